//! Every row of the mapping's tables and of the kit's own, each a test named after the row. What goes over the wire is
//! written out here, and what comes out is compared whole, in its JSON form.

mod capabilities;
mod commands;
mod errors;
mod events;
mod reads;
mod rows;
mod stage;
