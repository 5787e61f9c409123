//! The reference host.
