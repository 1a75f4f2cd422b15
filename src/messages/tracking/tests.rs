//! What a client that tracks is told, and when. cli/tests/server/tracking.rs compares it with a real
//! Redis.

use super::*;
use crate::messages::hub::Hub;

fn peer(hub: &Hub, id: u64) -> Arc<Peer> {
    let peer = Arc::new(Peer::new(id));
    peer.set_protocol(3);
    hub.meet_peer(&peer);
    peer
}

/// All messages that wait, as text.
fn received(peer: &Peer) -> Vec<String> {
    let text = |message| match message {
        Message::Invalidate { keys: None, .. } => "all".to_owned(),
        Message::Invalidate { keys: Some(keys), .. } => {
            let keys: Vec<_> = keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
            keys.join(" ")
        }
        other => format!("{other:?}"),
    };
    std::iter::from_fn(|| peer.inbox().take().unwrap()).map(text).collect()
}

fn keys(names: &[&str]) -> Vec<Box<[u8]>> {
    names.iter().map(|name| name.as_bytes().into()).collect()
}

fn change(hub: &Hub, origin: u64, key: &str) {
    let change = TableChange::Changed { key: key.as_bytes(), expired: false };
    hub.apply_tracking(origin, std::iter::once(change));
}

fn read(hub: &Hub, client: u64, names: &[&str]) {
    hub.apply_tracking(client, std::iter::once(TableChange::Read(&keys(names))));
}

/// A commit between the read point of a read and the end of its command would be missed if the table
/// learned of the read only afterwards.
#[test]
fn a_change_during_a_read_is_told_after_it() {
    let hub = Hub::default();
    let client = peer(&hub, 1);
    hub.track(&client, TrackingMode::default(), &[]);
    hub.begin_read(1, keys(&["a", "b"]));
    change(&hub, 2, "a");
    change(&hub, 1, "b");
    assert!(received(&client).is_empty());
    read(&hub, 1, &["a", "b"]);
    hub.end_read(1);
    assert_eq!(received(&client), ["a"]);
    change(&hub, 2, "a");
    change(&hub, 2, "b");
    assert_eq!(received(&client), ["b"]);
    hub.begin_read(1, keys(&["a"]));
    hub.apply_tracking(2, std::iter::once(TableChange::Flushed));
    received(&client);
    read(&hub, 1, &["a"]);
    hub.end_read(1);
    assert_eq!(received(&client), ["all"]);
    assert_eq!(hub.tracking_counts().keys, 0);
}

#[test]
fn keys_beyond_the_limit_are_told_as_changed() {
    let hub = Hub::default();
    let client = peer(&hub, 1);
    hub.set_tracking_max_keys(10);
    hub.track(&client, TrackingMode::default(), &[]);
    let names: Vec<String> = (0..100).map(|n| format!("k{n:02}")).collect();
    for name in &names {
        read(&hub, 1, &[name]);
        assert!(hub.tracking_counts().keys <= 10);
    }
    let mut told = received(&client);
    assert_eq!(told.len(), 90);
    for name in &names {
        change(&hub, 2, name);
    }
    told.extend(received(&client));
    told.sort();
    assert_eq!(told, names, "each key is told once, as evicted or as changed");
}

#[test]
fn nothing_is_kept_when_nobody_tracks() {
    let hub = Hub::default();
    assert!(!hub.anyone_tracks());
    let (a, b) = (peer(&hub, 1), peer(&hub, 2));
    hub.track(&a, TrackingMode::default(), &[]);
    hub.track(&b, TrackingMode { broadcasts: true, ..TrackingMode::default() }, &[b"x", b"y"]);
    read(&hub, 1, &["a"]);
    let counts = TrackingCounts { clients: 2, keys: 1, items: 1, prefixes: 2 };
    assert_eq!(hub.tracking_counts(), counts);
    assert!(hub.wants_any() && hub.wants_expired());
    hub.part(2);
    hub.untrack(1);
    assert_eq!(hub.tracking_counts(), TrackingCounts::default());
    assert!(!hub.wants_any() && !hub.knows_peer(2) && hub.knows_peer(1));
}

#[test]
fn a_redirect_without_its_target_is_told_to_the_client() {
    let hub = Hub::default();
    let (client, target) = (peer(&hub, 1), peer(&hub, 2));
    hub.track(&client, TrackingMode { redirect: 2, ..TrackingMode::default() }, &[]);
    read(&hub, 1, &["a", "b", "c"]);
    change(&hub, 3, "a");
    assert_eq!((received(&client).len(), received(&target)), (0, vec!["a".to_owned()]));
    // A client of version 2 receives only while it is subscribed to something.
    target.set_protocol(2);
    change(&hub, 3, "b");
    assert!(received(&target).is_empty());
    hub.part(2);
    change(&hub, 3, "c");
    assert_eq!(received(&client), ["BrokenRedirect { to: 2 }"]);
    assert!(hub.tracker_state(1).1);
}
