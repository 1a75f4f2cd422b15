//! Sorted sets: functions of commands with options.

mod add;
mod bounds;
mod combine;
mod range;
mod remove;
