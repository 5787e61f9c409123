//! BubblePaw: the adapter for a host that speaks the BubblePaw stdio protocol 0.1.

pub mod wire;
