//! Many concurrent connections.

use crate::resp::Resp;
use crate::support::{Lsmkv, allow_many_files, ask, info, reply_text, until};

const IDLE: usize = 1000;
const BUSY: usize = 100;
const ROUNDS: usize = 20;
const PIPELINE: usize = 10;

#[test]
fn a_thousand_idle_clients_cost_little_and_a_hundred_busy_ones_are_all_served() {
    allow_many_files();
    let server = Lsmkv::start(&[]);
    let mut idle: Vec<_> = (0..IDLE).map(|_| server.connect()).collect();
    idle.iter_mut().for_each(|client| assert_eq!(reply_text(client, "PING"), "+PONG"));
    let with_idle = server.resident_bytes();
    std::thread::scope(|scope| {
        for busy in 0..BUSY {
            let mut client = server.connect();
            scope.spawn(move || {
                let incr = vec![b"INCR".to_vec(), b"shared".to_vec()];
                let push =
                    vec![b"RPUSH".to_vec(), format!("own{busy}").into_bytes(), b"x".to_vec()];
                for round in 0..ROUNDS {
                    let commands: Vec<_> = [&incr, &push].repeat(PIPELINE);
                    let replies = client.pipeline(commands).unwrap();
                    let last = Resp::Int(((round + 1) * PIPELINE) as i64);
                    assert_eq!(replies.last(), Some(&last));
                }
            });
        }
    });
    let mut client = server.connect();
    assert_eq!(reply_text(&mut client, "GET shared"), (BUSY * ROUNDS * PIPELINE).to_string());
    // The server notices a closed connection a little later than the client.
    until("the busy ones are gone", || {
        info(&mut client, "clients", "connected_clients") as usize == IDLE + 1
    });
    let per_client = server.resident_bytes().min(with_idle) / IDLE as u64;
    assert!(per_client < 64 << 10, "{per_client} bytes for each idle client");
    for (n, client) in idle.iter_mut().enumerate() {
        assert_eq!(ask(client, &format!("SETNX idle{n} v")), Resp::Int(1));
    }
}
