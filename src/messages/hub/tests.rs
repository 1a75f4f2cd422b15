use super::*;
use crate::error::ErrorKind;

/// A subscriber of a hub.
struct Listener<'h> {
    hub: &'h Hub,
    number: u64,
    inbox: Arc<Inbox>,
}

impl<'h> Listener<'h> {
    fn new(hub: &'h Hub) -> Self {
        let inbox = Arc::new(Inbox::default());
        Self { hub, number: hub.join(&inbox), inbox }
    }

    fn subscribe(&self, kind: Kind, name: &str) -> usize {
        self.hub.subscribe(kind, name.as_bytes(), self.number, &self.inbox).0
    }

    fn unsubscribe(&self, kind: Kind, name: &str) -> usize {
        self.hub.unsubscribe(kind, name.as_bytes(), self.number).0
    }

    /// All messages that wait, as text.
    fn received(&self) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        std::iter::from_fn(|| self.inbox.take().unwrap())
            .map(|message| match message {
                Message::Channel { channel, payload } => {
                    format!("{} {}", text(&channel), text(&payload))
                }
                Message::Pattern { pattern, channel, payload } => {
                    format!("{}: {} {}", text(&pattern), text(&channel), text(&payload))
                }
                Message::Shard { channel, payload } => {
                    format!("shard {} {}", text(&channel), text(&payload))
                }
                other => format!("{other:?}"),
            })
            .collect()
    }
}

#[test]
fn a_message_reaches_the_subscribers_of_its_channel_and_of_matching_patterns() {
    let hub = Hub::default();
    let (one, two) = (Listener::new(&hub), Listener::new(&hub));
    assert_eq!(one.subscribe(Kind::Channel, "news"), 1);
    assert_eq!(one.subscribe(Kind::Channel, "news"), 1);
    assert_eq!(one.subscribe(Kind::Pattern, "n*"), 2);
    assert_eq!(two.subscribe(Kind::Channel, "news"), 1);
    assert_eq!(two.subscribe(Kind::Shard, "news"), 1);
    assert_eq!(hub.receivers(Kind::Channel, b"news"), 3);
    assert_eq!(hub.receivers(Kind::Channel, b"none"), 1);
    hub.publish(Kind::Channel, b"news", b"hello");
    hub.publish(Kind::Shard, b"news", b"shard");
    assert_eq!(one.received(), ["news hello", "n*: news hello"]);
    assert_eq!(two.received(), ["news hello", "shard news shard"]);
    assert_eq!(one.unsubscribe(Kind::Channel, "news"), 1);
    assert_eq!(one.unsubscribe(Kind::Channel, "never"), 1);
    hub.publish(Kind::Channel, b"news", b"again");
    assert_eq!(one.received(), ["n*: news again"]);
    assert_eq!(hub.unsubscribe_all(Kind::Pattern, one.number), (vec![b"n*"[..].into()], 0));
    hub.publish(Kind::Channel, b"news", b"last");
    assert_eq!(one.received(), [""; 0]);
    assert_eq!(hub.counts_of(two.number), [1, 0, 1]);
}

#[test]
fn names_without_subscribers_are_forgotten() {
    let hub = Hub::default();
    let one = Listener::new(&hub);
    for n in 0..10_000 {
        one.subscribe(Kind::Channel, &format!("channel {n}"));
    }
    assert_eq!(hub.len(Kind::Channel), 10_000);
    hub.leave(one.number);
    assert_eq!(hub.len(Kind::Channel), 0);
    let capacity = hub.subscriptions.lock().channels.capacity();
    assert!(capacity < 4096, "{capacity}");
}

#[test]
fn a_slow_subscriber_loses_its_subscriptions_and_others_go_on() {
    let hub = Hub::default();
    hub.set_limits(OutputLimits { hard_bytes: 1000, soft_bytes: 0, soft_seconds: 0 });
    let (slow, quick) = (Listener::new(&hub), Listener::new(&hub));
    for listener in [&slow, &quick] {
        listener.subscribe(Kind::Channel, "c");
        listener.subscribe(Kind::Pattern, "c*");
    }
    for n in 0..100 {
        hub.publish(Kind::Channel, b"c", b"x");
        assert_eq!(quick.received().len(), 2, "{n}");
    }
    assert_eq!(slow.inbox.take().unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!((hub.counts_of(slow.number), hub.counts_of(quick.number)), ([0, 0, 0], [1, 1, 0]));
}

#[test]
fn a_close_ends_all_waits() {
    let hub = Hub::default();
    let before = Listener::new(&hub);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(before.inbox.wait(None).unwrap_err().kind(), ErrorKind::Closed));
        hub.close();
    });
    let after = Listener::new(&hub);
    assert_eq!(after.inbox.take().unwrap_err().kind(), ErrorKind::Closed);
}
