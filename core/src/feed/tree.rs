//! A list that is cheap to copy and cheap to change in the middle.
//!
//! A tree that counts: every node knows how many elements are below it, so that a place is found, an element put in or
//! taken out, in logarithmic time. Copies share their nodes; a change copies the nodes on its way down and no others.
//! That is what lets a feed hand out its state with every update of a chat of 100,000 items.
//! It knows nothing of chats.

use std::sync::Arc;

/// Elements in a leaf: a leaf is what one change copies where a copy of the list is alive.
const LEAF_ELEMENTS: usize = 32;
/// Children of an inner node: three levels hold half a million elements.
const NODE_CHILDREN: usize = 32;

/// The list.
#[derive(Clone)]
pub(super) struct Tree<T> {
    root: Node<T>,
}

#[derive(Clone)]
enum Node<T> {
    Leaf(Arc<Vec<T>>),
    Inner(Arc<Inner<T>>),
}

#[derive(Clone)]
struct Inner<T> {
    len: usize,
    children: Vec<Node<T>>,
}

impl<T: Clone> Tree<T> {
    pub(super) fn new() -> Self {
        Tree { root: Node::Leaf(Arc::new(Vec::new())) }
    }

    pub(super) fn len(&self) -> usize {
        self.root.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at >= self.len() {
            return None;
        }
        let (mut node, mut at) = (&self.root, at);
        loop {
            match node {
                Node::Leaf(elements) => return elements.get(at),
                Node::Inner(inner) => {
                    let (child, within) = inner.find(at);
                    (node, at) = (&inner.children[child], within);
                }
            }
        }
    }

    /// The element at a place, to change it.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len() {
            return None;
        }
        let (mut node, mut at) = (&mut self.root, at);
        loop {
            match node {
                Node::Leaf(elements) => return Arc::make_mut(elements).get_mut(at),
                Node::Inner(inner) => {
                    let (child, within) = inner.find(at);
                    (node, at) = (&mut Arc::make_mut(inner).children[child], within);
                }
            }
        }
    }

    pub(super) fn push(&mut self, element: T) {
        self.insert(self.len(), element);
    }

    /// Puts an element before the one at `at`; at the end where there is none.
    pub(super) fn insert(&mut self, at: usize, element: T) {
        let at = at.min(self.len());
        if let Some(right) = self.root.insert(at, element) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Arc::new(Vec::new())));
            let len = left.len() + right.len();
            self.root = Node::Inner(Arc::new(Inner { len, children: vec![left, right] }));
        }
    }

    pub(super) fn remove(&mut self, at: usize) -> Option<T> {
        if at >= self.len() {
            return None;
        }
        let element = self.root.remove(at);
        while let Node::Inner(inner) = &self.root {
            match inner.children.as_slice() {
                [only] => self.root = only.clone(),
                _ => break,
            }
        }
        Some(element)
    }

    pub(super) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { path: Vec::new(), leaf: [].iter(), left: self.len() };
        iter.descend(&self.root);
        iter
    }
}

#[cfg(test)]
impl<T> Tree<T> {
    /// How many elements lie in leaves that the other one does not have.
    pub(super) fn not_shared_with(&self, other: &Tree<T>) -> usize {
        let mut theirs = std::collections::HashSet::new();
        other.root.leaves(&mut |leaf| {
            theirs.insert(Arc::as_ptr(leaf));
        });
        let mut count = 0;
        self.root.leaves(&mut |leaf| {
            if !theirs.contains(&Arc::as_ptr(leaf)) {
                count += leaf.len()
            }
        });
        count
    }
}

#[cfg(test)]
impl<T> Node<T> {
    fn leaves(&self, visit: &mut impl FnMut(&Arc<Vec<T>>)) {
        match self {
            Node::Leaf(leaf) => visit(leaf),
            Node::Inner(inner) => inner.children.iter().for_each(|child| child.leaves(visit)),
        }
    }
}

impl<T: Clone> FromIterator<T> for Tree<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut tree = Tree::new();
        elements.into_iter().for_each(|element| tree.push(element));
        tree
    }
}

impl<T: Clone> Node<T> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(elements) => elements.len(),
            Node::Inner(inner) => inner.len,
        }
    }

    /// Gives the right half where the node had to be split.
    fn insert(&mut self, at: usize, element: T) -> Option<Node<T>> {
        match self {
            Node::Leaf(elements) => {
                let elements = Arc::make_mut(elements);
                if elements.len() < LEAF_ELEMENTS {
                    elements.insert(at, element);
                    return None;
                }
                let mut right = elements.split_off(split_at(at, elements.len()));
                if at <= elements.len() && !right.is_empty() {
                    elements.insert(at, element);
                } else {
                    right.insert(at - elements.len(), element);
                }
                Some(Node::Leaf(Arc::new(right)))
            }
            Node::Inner(inner) => {
                let inner = Arc::make_mut(inner);
                inner.len += 1;
                // What is added at the end goes into the last child.
                let (child, within) = if at + 1 == inner.len {
                    let last = inner.children.len() - 1;
                    (last, inner.children[last].len())
                } else {
                    inner.find(at)
                };
                let right = inner.children[child].insert(within, element)?;
                inner.children.insert(child + 1, right);
                if inner.children.len() <= NODE_CHILDREN {
                    return None;
                }
                let children = inner.children.split_off(split_at(child + 1, inner.children.len() - 1));
                let len = children.iter().map(Node::len).sum();
                inner.len -= len;
                Some(Node::Inner(Arc::new(Inner { len, children })))
            }
        }
    }

    /// `at` is below the length.
    fn remove(&mut self, at: usize) -> T {
        match self {
            Node::Leaf(elements) => Arc::make_mut(elements).remove(at),
            Node::Inner(inner) => {
                let inner = Arc::make_mut(inner);
                let (child, within) = inner.find(at);
                inner.len -= 1;
                let element = inner.children[child].remove(within);
                // Nodes that shrank are left alone: a feed adds far more than it removes.
                if inner.children[child].len() == 0 && inner.children.len() > 1 {
                    inner.children.remove(child);
                }
                element
            }
        }
    }
}

/// Where to split a full node: in the middle, but at the end where it grows there, so that a list that was only ever
/// added to has full nodes.
fn split_at(at: usize, len: usize) -> usize {
    if at >= len { len } else { len / 2 }
}

impl<T: Clone> Inner<T> {
    /// The child that holds the element at `at`, and its place in there. `at` is below the length.
    fn find(&self, mut at: usize) -> (usize, usize) {
        for (n, child) in self.children.iter().enumerate() {
            if at < child.len() {
                return (n, at);
            }
            at -= child.len();
        }
        unreachable!("a node's length is that of its children")
    }
}

/// The elements in order.
pub(super) struct Iter<'a, T> {
    path: Vec<std::slice::Iter<'a, Node<T>>>,
    leaf: std::slice::Iter<'a, T>,
    left: usize,
}

impl<'a, T> Iter<'a, T> {
    fn descend(&mut self, mut node: &'a Node<T>) {
        loop {
            match node {
                Node::Leaf(elements) => {
                    self.leaf = elements.iter();
                    return;
                }
                Node::Inner(inner) => {
                    let mut children = inner.children.iter();
                    let Some(first) = children.next() else { return };
                    self.path.push(children);
                    node = first;
                }
            }
        }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(element) = self.leaf.next() {
                self.left -= 1;
                return Some(element);
            }
            let next = loop {
                match self.path.last_mut()?.next() {
                    Some(node) => break node,
                    None => self.path.pop(),
                };
            };
            self.descend(next);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    thread_local! {
        static CLONES: Cell<usize> = const { Cell::new(0) };
    }

    /// An element that counts how often one was copied.
    #[derive(Debug, PartialEq)]
    struct Counted(usize);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            CLONES.set(CLONES.get() + 1);
            Counted(self.0)
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(usize, u32),
        Remove(usize),
        Change(usize, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Step::Insert(at, value)),
            1 => any::<usize>().prop_map(Step::Remove),
            1 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Step::Change(at, value)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_list(steps in prop::collection::vec(step(), 0..2000)) {
            let (mut tree, mut list) = (Tree::new(), Vec::new());
            for (n, step) in steps.into_iter().enumerate() {
                let before = (tree.clone(), list.clone());
                match step {
                    Step::Insert(at, value) => {
                        let at = at % (list.len() + 1);
                        tree.insert(at, value);
                        list.insert(at, value);
                    }
                    Step::Remove(_) if list.is_empty() => prop_assert!(tree.remove(0).is_none()),
                    Step::Remove(at) => {
                        let at = at % list.len();
                        prop_assert_eq!(tree.remove(at), Some(list.remove(at)));
                    }
                    Step::Change(_, _) if list.is_empty() => prop_assert!(tree.get_mut(0).is_none()),
                    Step::Change(at, value) => {
                        let at = at % list.len();
                        *tree.get_mut(at).unwrap() = value;
                        list[at] = value;
                    }
                }
                prop_assert_eq!(tree.len(), list.len());
                if n % 97 == 0 {
                    prop_assert!(before.0.iter().eq(before.1.iter()), "a copy changed with its original");
                    prop_assert!(tree.iter().eq(list.iter()));
                    prop_assert!((0..list.len()).all(|at| tree.get(at) == list.get(at)));
                }
            }
            prop_assert!(tree.iter().eq(list.iter()));
            prop_assert_eq!(tree.iter().len(), list.len());
            prop_assert!(tree.get(list.len()).is_none());
        }
    }

    #[test]
    fn a_change_copies_one_leaf_whatever_the_length() {
        for len in [100, 100_000] {
            let mut tree: Tree<Counted> = (0..len).map(Counted).collect();
            for at in [0, len / 2, len - 1] {
                let copy = tree.clone();
                CLONES.set(0);
                tree.get_mut(at).unwrap().0 = 7;
                tree.insert(at, Counted(1));
                tree.push(Counted(2));
                assert!(CLONES.get() <= 3 * LEAF_ELEMENTS, "{} copies in a list of {len}", CLONES.get());
                assert_eq!(copy.len() + 2, tree.len());
            }
            CLONES.set(0);
            tree.push(Counted(3));
            assert_eq!(CLONES.get(), 0, "nothing is copied where no copy is alive");
        }
    }
}
