//! INFO, CONFIG, CLIENT, TIME and waits without blocking: what programs that expect a server ask.

use super::*;
use crate::commands::reply_builder::ReplyBuilder;

fn bulk(reply: Reply) -> String {
    match reply {
        Reply::Bulk(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("{other:?}"),
    }
}

fn settings(session: &mut Session, line: &str) -> Vec<(String, String)> {
    match say(session, line) {
        Reply::Map(pairs) => {
            pairs.into_iter().map(|(name, value)| (bulk(name), bulk(value))).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn info_has_the_sections_that_are_asked_for() {
    let db = db();
    let mut session = db.session();
    db.set(b"k", b"v").unwrap();
    db.pexpire(b"k", 100_000, ExpireIf::ALWAYS).unwrap();
    db.select(3).unwrap().set(b"k", b"v").unwrap();
    let all = bulk(say(&mut session, "INFO"));
    for line in ["redis_version:7.0.15", "role:master", "maxmemory_policy:noeviction", "# Stats"] {
        assert!(all.lines().any(|found| found == line), "{line}: {all}");
    }
    let keys = bulk(say(&mut session, "INFO KEYSPACE"));
    assert!(keys.starts_with("# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl="), "{keys}");
    assert!(keys.ends_with("db3:keys=1,expires=0,avg_ttl=0\r\n"), "{keys}");
    assert_eq!(bulk(say(&mut session, "INFO none")), "");
    assert_eq!(say(&mut session, "MULTI"), Reply::OK);
    say(&mut session, "INFO cluster");
    let Reply::Array(mut replies) = say(&mut session, "EXEC") else { panic!() };
    assert_eq!(bulk(replies.remove(0)), "# Cluster\r\ncluster_enabled:0\r\n");
}

#[test]
fn settings_are_those_of_the_store_and_key_events_can_be_set() {
    let db = db();
    let mut session = db.session();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let found = settings(&mut session, "CONFIG GET MAXMEMORY* databases");
    let expected =
        [pair("databases", "16"), pair("maxmemory", "0"), pair("maxmemory-policy", "noeviction")];
    assert_eq!(found, expected);
    assert_eq!(say(&mut session, "CONFIG SET notify-keyspace-events Ex save "), Reply::OK);
    assert_eq!(db.keyspace_events(), "xE");
    for (line, error) in [
        (
            "CONFIG SET maxmemory 5",
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - the option is set when the store is opened",
        ),
        (
            "CONFIG SET nothing 5",
            "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'",
        ),
        ("CONFIG GET", "ERR wrong number of arguments for 'config|get' command"),
        ("CONFIG SET a", "ERR wrong number of arguments for 'config|set' command"),
        ("CONFIG FOO", "ERR unknown subcommand 'FOO'. Try CONFIG HELP."),
        ("CLIENT FOO", "ERR unknown subcommand 'FOO'. Try CLIENT HELP."),
        ("CLIENT NO-EVICT maybe", "ERR syntax error"),
        ("CLIENT LIST ID x", "ERR Invalid client ID"),
        ("CLIENT SETINFO name x", "ERR Unrecognized option 'name'"),
    ] {
        assert_eq!(say(&mut session, line), Reply::Error(error.to_owned()), "{line}");
    }
    let bad = say(&mut session, "CONFIG SET notify-keyspace-events Q");
    assert!(matches!(bad, Reply::Error(text) if text.contains("Invalid event class")));
    assert_eq!(db.keyspace_events(), "xE");
}

#[test]
fn the_list_of_clients_has_the_sessions_that_are_open() {
    let db = db();
    let (mut one, mut two) = (db.session(), db.session());
    one.list_as_client();
    two.list_as_client();
    assert_eq!(say(&mut one, "CLIENT SETNAME worker"), Reply::OK);
    assert_eq!(say(&mut one, "CLIENT SETINFO LIB-NAME redis-py"), Reply::OK);
    say(&mut one, "SELECT 4");
    let list = bulk(say(&mut two, "CLIENT LIST"));
    assert_eq!(list.lines().count(), 2, "{list}");
    let first = list.lines().find(|line| line.contains("name=worker")).unwrap();
    assert!(first.contains(" db=4 ") && first.contains("lib-name=redis-py"), "{first}");
    let Reply::Int(id) = say(&mut one, "CLIENT ID") else { panic!() };
    let only = bulk(say(&mut two, &format!("CLIENT LIST ID {id}")));
    assert_eq!((only.lines().count(), only.contains("name=worker")), (1, true));
    drop(one);
    assert_eq!(bulk(say(&mut two, "CLIENT LIST")).lines().count(), 1);
    assert!(bulk(say(&mut two, "INFO clients")).contains("connected_clients:1\r\n"));
}

#[test]
fn a_pop_that_would_wait_says_so_and_takes_nothing_before_it_is_called_again() {
    let db = db();
    let mut session = db.session();
    let argv: [&[u8]; 3] = [b"BLPOP", b"k", b"0"];
    let attempt = |session: &mut Session| {
        let mut reply = ReplyBuilder::default();
        session.command_nowait(&argv, &mut reply).unwrap().then(|| reply.finish())
    };
    let popped = Reply::Array(vec![Reply::Bulk("k".into()), Reply::Bulk("a".into())]);
    assert_eq!(attempt(&mut session), None);
    assert_eq!(db.waiting_calls(), 1);
    db.rpush(b"k", &[b"a"]).unwrap();
    assert_eq!((db.waiting_calls(), db.llen(b"k").unwrap()), (0, 1));
    assert_eq!(attempt(&mut session), Some(popped));
    assert_eq!(db.llen(b"k").unwrap(), 0);
    assert_eq!(attempt(&mut session), None);
    say(&mut session, "PING");
    assert_eq!(db.waiting_calls(), 0);
}
