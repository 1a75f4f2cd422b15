//! Blocked clients.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::resp::Resp;
use crate::support::{Lsmkv, ask, info, reply_text, until};

/// Sends a command on a connection of its own; the reply arrives through the channel.
fn block_client(server: &Lsmkv, line: &str) -> (i64, Receiver<Resp>) {
    let mut client = server.connect();
    let Resp::Int(id) = ask(&mut client, "CLIENT ID") else { panic!("no id") };
    let (sender, receiver) = channel();
    let line = line.to_owned();
    std::thread::spawn(move || {
        // The test may end first.
        let _ = sender.send(ask(&mut client, &line));
    });
    (id, receiver)
}

fn wait_for_blocked(server: &Lsmkv, count: u64) {
    let mut client = server.connect();
    until("they wait", || info(&mut client, "clients", "blocked_clients") == count);
}

fn received(receiver: &Receiver<Resp>) -> String {
    let reply = receiver.recv_timeout(Duration::from_secs(30)).unwrap();
    let text = |item: &Resp| match item.bytes() {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => format!("{item:?}"),
    };
    match &reply {
        Resp::Array(Some(items)) => items.iter().map(text).collect::<Vec<_>>().join(" "),
        other => text(other),
    }
}

#[test]
fn who_came_first_is_served_first() {
    let server = Lsmkv::start(&[]);
    let mut receivers = Vec::new();
    for n in 0..5 {
        receivers.push(block_client(&server, "BLPOP none queue 0").1);
        wait_for_blocked(&server, n + 1);
    }
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "RPUSH queue 0 1 2"), Resp::Int(3));
    assert_eq!(ask(&mut client, "RPUSH queue 3"), Resp::Int(1));
    assert_eq!(ask(&mut client, "LPUSH queue 4"), Resp::Int(1));
    for (n, receiver) in receivers.iter().enumerate() {
        assert_eq!(received(receiver), format!("queue {n}"));
    }
    assert_eq!(ask(&mut client, "EXISTS queue"), Resp::Int(0));
}

#[test]
fn whatever_makes_a_key_wakes_those_who_wait_for_it() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    for (wait, makes, expected) in [
        ("BRPOP k 0", "LINSERT k BEFORE a b|RPUSH k a", "k a"),
        ("BLPOP k 0", "RPUSH other a|RENAME other k", "k a"),
        ("BLPOP k 0", "RPUSH other a|COPY other k|DEL other", "k a"),
        ("BLPOP k 0", "SADD set a|SORT set ALPHA STORE k|DEL set", "k a"),
        ("BLPOP k 0", "RPUSH other a|RPOPLPUSH other k", "k a"),
        ("BLPOP k 0", "SELECT 5|RPUSH k a|MOVE k 0|SELECT 0", "k a"),
        ("BLPOP k 0", "SELECT 5|RPUSH k a|SWAPDB 5 0|SELECT 0", "k a"),
        ("BLPOP k 0", "MULTI|SET x y|RPUSH k a|RPUSH k b|EXEC|DEL k x", "k a"),
        ("BLMOVE k moved LEFT LEFT 0", "RPUSH k a|DEL moved", "a"),
        ("BLMPOP 0 2 none k RIGHT COUNT 2", "RPUSH k a b c|DEL k", "k [\"c\", \"b\"]"),
        ("BZPOPMIN k 0", "ZADD k 2 b 1 a|DEL k", "k a 1"),
        ("BZPOPMAX k 0", "ZADD o 2 b|ZUNIONSTORE k 1 o|DEL o", "k b 2"),
        ("BZMPOP 0 1 k MIN", "ZINCRBY k 1 a", "k [[\"a\", \"1\"]]"),
    ] {
        let (_, receiver) = block_client(&server, wait);
        wait_for_blocked(&server, 1);
        for line in makes.split('|') {
            let reply = ask(&mut client, line);
            assert!(!reply.is_error(), "{line}: {reply:?}");
        }
        assert_eq!(received(&receiver), expected, "{wait} after {makes}");
        assert_eq!(ask(&mut client, "DBSIZE"), Resp::Int(0), "{wait} after {makes}");
        wait_for_blocked(&server, 0);
    }
}

#[test]
fn a_chain_of_moves_passes_an_element_through() {
    let server = Lsmkv::start(&[]);
    let (_, last) = block_client(&server, "BLPOP c 0");
    wait_for_blocked(&server, 1);
    let (_, second) = block_client(&server, "BLMOVE b c LEFT LEFT 0");
    wait_for_blocked(&server, 2);
    let (_, first) = block_client(&server, "BRPOPLPUSH a b 0");
    wait_for_blocked(&server, 3);
    ask(&mut server.connect(), "RPUSH a x");
    assert_eq!(
        (received(&first), received(&second), received(&last)),
        ("x".into(), "x".into(), "c x".into())
    );
}

#[test]
fn another_type_wakes_nobody() {
    let server = Lsmkv::start(&[]);
    let (_, receiver) = block_client(&server, "BLPOP k 0");
    wait_for_blocked(&server, 1);
    let mut client = server.connect();
    for line in ["SET k v", "DEL k", "ZADD k 1 m", "DEL k"] {
        ask(&mut client, line);
    }
    assert!(receiver.try_recv().is_err());
    ask(&mut client, "RPUSH k a");
    assert_eq!(received(&receiver), "k a");
}

#[test]
fn time_runs_out_at_the_time_given() {
    let server = Lsmkv::start(&[]);
    let begun = Instant::now();
    assert_eq!(reply_text(&mut server.connect(), "BLPOP k 0.2"), "(nil array)");
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(200) && taken < Duration::from_secs(10), "{taken:?}");
    wait_for_blocked(&server, 0);
}

#[test]
fn a_client_that_has_gone_takes_nothing() {
    let server = Lsmkv::start(&[]);
    {
        let mut stream = server.stream();
        std::io::Write::write_all(&mut stream, b"BLPOP k 0\r\n").unwrap();
        wait_for_blocked(&server, 1);
    }
    wait_for_blocked(&server, 0);
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "RPUSH k a"), Resp::Int(1));
    assert_eq!(ask(&mut client, "LLEN k"), Resp::Int(1));
}

#[test]
fn who_waits_for_a_replica_waits_as_long_as_it_asked_for_or_until_it_is_told() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let begun = Instant::now();
    assert_eq!(ask(&mut client, "WAIT 1 200"), Resp::Int(0));
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let (id, receiver) = block_client(&server, "WAIT 1 0");
    wait_for_blocked(&server, 1);
    assert_eq!(ask(&mut client, &format!("CLIENT UNBLOCK {id}")), Resp::Int(1));
    assert_eq!(received(&receiver), ":0");
}

#[test]
fn a_wait_can_be_ended_by_others_and_what_was_sent_behind_it_runs_then() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let (id, receiver) = block_client(&server, "BLPOP k 0");
    wait_for_blocked(&server, 1);
    assert_eq!(ask(&mut client, &format!("CLIENT UNBLOCK {id}")), Resp::Int(1));
    assert_eq!(received(&receiver), "(nil array)");
    let (id, receiver) = block_client(&server, "BLPOP k 0");
    wait_for_blocked(&server, 1);
    assert_eq!(ask(&mut client, &format!("CLIENT UNBLOCK {id} ERROR")), Resp::Int(1));
    assert_eq!(received(&receiver), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    assert_eq!(ask(&mut client, &format!("CLIENT UNBLOCK {id}")), Resp::Int(0));

    let pipeline = ["BLPOP k 0", "SET after 1", "GET after"]
        .map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
    let mut piped = server.connect();
    let sender = std::thread::spawn(move || piped.pipeline(&pipeline).unwrap());
    wait_for_blocked(&server, 1);
    assert_eq!(ask(&mut client, "EXISTS after"), Resp::Int(0));
    ask(&mut client, "RPUSH k x");
    let replies = sender.join().unwrap();
    assert_eq!(replies[2].bytes(), Some(&b"1"[..]));
}

#[test]
fn elements_are_neither_lost_nor_given_twice_under_load() {
    const TAKERS: usize = 8;
    const ELEMENTS: usize = 2000;
    let server = Lsmkv::start(&[]);
    let mut taken: Vec<i64> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|_| {
                let mut client = server.connect();
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    while let Resp::Array(Some(items)) = ask(&mut client, "BLPOP a b 0") {
                        let text = std::str::from_utf8(items[1].bytes().unwrap()).unwrap();
                        match text.parse() {
                            Ok(number) => taken.push(number),
                            Err(_) => break,
                        }
                    }
                    taken
                })
            })
            .collect();
        let givers: Vec<_> = ["a", "b"]
            .map(|key| {
                let mut client = server.connect();
                let offset = if key == "a" { 0 } else { ELEMENTS };
                scope.spawn(move || {
                    for n in 0..ELEMENTS {
                        ask(&mut client, &format!("RPUSH {key} {}", offset + n));
                    }
                })
            })
            .into_iter()
            .collect();
        givers.into_iter().for_each(|giver| giver.join().unwrap());
        let mut client = server.connect();
        (0..TAKERS).for_each(|_| drop(ask(&mut client, "RPUSH a end")));
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    taken.sort_unstable();
    assert_eq!(taken, (0..2 * ELEMENTS as i64).collect::<Vec<_>>());
}

#[test]
fn keys_are_served_in_the_order_in_which_a_transaction_wrote_them() {
    let server = Lsmkv::start(&[]);
    let (_, receiver) = block_client(&server, "BLPOP b a 0");
    wait_for_blocked(&server, 1);
    let mut client = server.connect();
    for line in ["MULTI", "RPUSH a 1", "RPUSH b 2", "EXEC"] {
        ask(&mut client, line);
    }
    assert_eq!(received(&receiver), "a 1");
}

#[test]
fn a_reply_that_is_not_wanted_is_not_sent_when_its_wait_is_over() {
    let server = Lsmkv::start(&[]);
    let mut stream = server.stream();
    let lines = b"CLIENT REPLY SKIP\r\nBLPOP k 0\r\nPING\r\n";
    std::io::Write::write_all(&mut stream, lines).unwrap();
    wait_for_blocked(&server, 1);
    ask(&mut server.connect(), "RPUSH k v");
    let mut told = [0; 7];
    std::io::Read::read_exact(&mut stream, &mut told).unwrap();
    assert_eq!(&told, b"+PONG\r\n");
}

#[test]
fn what_was_taken_for_a_client_reaches_it_before_the_server_ends() {
    for threads in ["1", "2"] {
        let server = Lsmkv::start(&["--threads", threads, "--sync", "always"]);
        let (_, receiver) = block_client(&server, "BLPOP k 0");
        wait_for_blocked(&server, 1);
        let mut stream = server.stream();
        std::io::Write::write_all(&mut stream, b"RPUSH k v\r\nSHUTDOWN\r\n").unwrap();
        assert_eq!(received(&receiver), "k v");
        assert!(server.wait().0.success());
    }
}
