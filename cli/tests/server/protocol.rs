//! Requests and replies on the wire.

use std::io::{BufReader, Write};

use crate::resp::{Resp, read};
use crate::support::{Lsmkv, ask, info, read_until_closed, reply_text, until};

fn bulk(text: &str) -> Resp {
    Resp::Bulk(Some(text.as_bytes().to_vec()))
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let words = |line: String| line.split(' ').map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
    let commands: Vec<_> = (0..5000)
        .map(|n| {
            words(if n % 2 == 0 { format!("SET k{n} {n}") } else { format!("GET k{}", n - 1) })
        })
        .collect();
    let replies = client.pipeline(&commands).unwrap();
    for (n, reply) in replies.iter().enumerate() {
        let expected =
            if n % 2 == 0 { Resp::Status("OK".into()) } else { bulk(&(n - 1).to_string()) };
        assert_eq!(*reply, expected);
    }
}

#[test]
fn requests_may_arrive_byte_by_byte_and_as_lines() {
    let server = Lsmkv::start(&[]);
    let mut stream = server.stream();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na b\r\nGET k\r\n\r\nset k \"c\\x64\"\nGET k\n"
    {
        stream.write_all(&[*byte]).unwrap();
    }
    let replies: Vec<_> = (0..4).map(|_| read(&mut reader).unwrap()).collect();
    let ok = Resp::Status("OK".into());
    assert_eq!(replies, [ok.clone(), bulk("a b"), ok, bulk("cd")]);
}

#[test]
fn hello_changes_the_form_of_replies_and_back() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    ask(&mut client, "HSET h f v");
    ask(&mut client, "ZADD z 1.5 m");
    ask(&mut client, "SADD s a");
    let pair = vec![bulk("f"), bulk("v")];
    assert_eq!(ask(&mut client, "HGETALL h"), Resp::Array(Some(pair.clone())));
    let Resp::Map(greeting) = ask(&mut client, "HELLO 3 SETNAME me") else { panic!("no map") };
    assert!(greeting.windows(2).any(|two| two == [bulk("proto"), Resp::Int(3)]));
    assert_eq!(ask(&mut client, "HGETALL h"), Resp::Map(pair));
    assert_eq!(ask(&mut client, "ZSCORE z m"), Resp::Double("1.5".into()));
    assert_eq!(ask(&mut client, "SMEMBERS s"), Resp::Set(vec![bulk("a")]));
    assert_eq!(ask(&mut client, "GET none"), Resp::Null);
    let nested = Resp::Array(Some(vec![bulk("m"), Resp::Double("1.5".into())]));
    assert_eq!(ask(&mut client, "ZRANGE z 0 -1 WITHSCORES"), Resp::Array(Some(vec![nested])));
    assert_eq!(reply_text(&mut client, "CLIENT GETNAME"), "me");
    assert!(matches!(ask(&mut client, "INFO server"), Resp::Verbatim(_)));
    ask(&mut client, "HELLO 2");
    assert_eq!(ask(&mut client, "ZSCORE z m"), bulk("1.5"));
    assert!(reply_text(&mut client, "HELLO 4").contains("NOPROTO"));
}

#[test]
fn an_error_stays_on_one_line() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let reply = client.call(&["no\r\n+such", "x\ny"]).unwrap();
    assert_eq!(
        reply,
        Resp::Error("ERR unknown command 'no  +such', with args beginning with: 'x y' ".into())
    );
    assert_eq!(reply_text(&mut client, "PING"), "+PONG");
}

#[test]
fn large_values_travel_both_ways() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let value: Vec<u8> = (0..20_000_000u32).map(|n| (n * 7 % 251) as u8).collect();
    let set = vec![b"SET".to_vec(), b"big".to_vec(), value.clone()];
    let get = vec![b"GET".to_vec(), b"big".to_vec()];
    let replies = client.pipeline([&set, &get, &get]).unwrap();
    assert!(replies[1..].iter().all(|reply| reply.bytes() == Some(&value)));
}

#[test]
fn quit_is_answered_and_then_the_line_is_closed() {
    let server = Lsmkv::start(&[]);
    let mut stream = server.stream();
    stream.write_all(b"PING\r\nQUIT\r\nPING\r\n").unwrap();
    assert_eq!(read_until_closed(&mut stream), "+PONG\r\n+OK\r\n");
}

#[test]
fn who_hangs_up_after_its_requests_still_gets_replies_and_then_goes() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    for _ in 0..20 {
        let mut stream = server.stream();
        stream.write_all(b"PING\r\nPING\r\n").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read_until_closed(&mut stream), "+PONG\r\n+PONG\r\n");
    }
    until("all are gone", || info(&mut witness, "clients", "connected_clients") == 1);
}

#[test]
fn writes_sent_together_are_answered_one_by_one() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let lines = ["SET a 1", "INCR a", "LPUSH a x", "SET", "INCR a", "GET a", "RPUSH l 1", "LPOP l"];
    let words = |line: &str| line.split(' ').map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
    let commands: Vec<_> = lines.iter().map(|line| words(line)).collect();
    let replies = client.pipeline(&commands).unwrap();
    let shown: Vec<_> = replies.iter().map(|reply| format!("{reply:?}")).collect();
    assert_eq!(
        shown,
        [
            "+OK",
            ":2",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
            "-ERR wrong number of arguments for 'set' command",
            ":3",
            "\"3\"",
            ":1",
            "\"1\"",
        ]
    );
    let commits = info(&mut client, "lsmkv", "commits");
    let many: Vec<_> = (0..640).map(|n| words(&format!("SET k{n} v"))).collect();
    client.pipeline(&many).unwrap();
    let commits = info(&mut client, "lsmkv", "commits") - commits;
    assert!(commits <= 100, "{commits} commits for 640 writes");
}
