//! The door against its ports and against a backend that notes what it was asked.

mod calls;
mod faults;
mod limits;
mod notes;
mod ports;
mod streams;

use std::sync::Arc;

use super::Door;
use notes::Notes;

fn door() -> (Arc<Notes>, Door) {
    let notes = Arc::new(Notes::default());
    (notes.clone(), Door::new(notes))
}
