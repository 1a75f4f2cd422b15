//! Tests of whole tables. `support` makes them, the others read them.

mod behaviour;
mod damage;
mod golden;
mod model;
mod raised;
mod support;
mod tail;
