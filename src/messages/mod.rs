//! Messages between the handles of one process: channels, events of keys, and waits for elements.
//!
//! - `hub`: who listens to which channel, and delivery;
//! - `inbox`: the bounded queue of one subscriber;
//! - `names`: subscribers by channel or pattern;
//! - `peer`: a session as those see it who send to it;
//! - `tracking`, `trackers`: keys that clients have cached, and messages that they are no longer valid;
//! - `events`: the classes of key events, as `notify-keyspace-events` names them;
//! - `waiters`, `wait_queues`: calls that wait until a key holds an element; `handle_waits`: the ones
//!   of a handle;
//! - `clients`: the sessions of a store.
//!
//! Nothing here knows how a command runs. Commands hand over what they have to say after their
//! commit.

pub(crate) mod clients;
pub(crate) mod events;
mod handle_waits;
mod hub;
mod inbox;
mod names;
mod peer;
mod trackers;
mod tracking;
mod wait_queues;
mod waiters;

pub use events::normalized_event_classes;
pub(crate) use handle_waits::{HandleWaits, Interrupt};
pub(crate) use hub::{Hub, Kind};
pub use inbox::OutputLimits;
pub(crate) use inbox::{Inbox, Message};
pub(crate) use peer::Peer;
pub use tracking::TrackingCounts;
pub(crate) use tracking::{TableChange, TrackedReads, TrackingMode};
pub(crate) use wait_queues::Waiter;
pub(crate) use waiters::Attempt;
