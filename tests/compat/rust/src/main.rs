//! The `redis` crate: commands, transactions, scripts, messages, asynchronous use.
//!
//! `lsmkv-compat SCENARIO redis://127.0.0.1:PORT/0` ends with status 0 if the scenario saw the effect
//! that it names.

use std::time::Duration;

use redis::{AsyncCommands, Commands, Connection, RedisError, RedisResult, Script};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{found:?}, not {expected:?}").into()) }
}

fn connect(url: &str) -> RedisResult<Connection> {
    let connection = redis::Client::open(url)?.get_connection()?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(connection)
}

/// Commands, a pipeline, and a transaction that notices a change.
fn commands(url: &str) -> Outcome {
    let mut db = connect(url)?;
    () = db.set_ex("k", "v", 100)?;
    equal(db.get::<_, String>("k")?, "v".into())?;
    () = db.hset_multiple("h", &[("x", 1), ("y", 2)])?;
    let mut fields: Vec<(String, u32)> = db.hgetall("h")?;
    fields.sort();
    equal(fields, vec![("x".into(), 1), ("y".into(), 2)])?;
    let (first, second): (u32, u32) =
        redis::pipe().atomic().incr("n", 1).incr("n", 5).query(&mut db)?;
    equal((first, second), (1, 6))?;
    let mut other = connect(url)?;
    let mut tries = 0;
    let (sum,): (u32,) = redis::transaction(&mut db, &["n"], |db, pipe| {
        let n: u32 = db.get("n")?;
        tries += 1;
        if tries == 1 {
            () = other.set("n", 100)?;
        }
        pipe.set("n", n + 1).ignore().get("n").query(db)
    })?;
    equal((tries, sum), (2, 101))?;
    let mut keys: Vec<String> = db.scan()?.collect::<RedisResult<_>>()?;
    keys.sort();
    equal(keys, vec!["h".into(), "k".into(), "n".into()])?;
    let refused: Result<u32, RedisError> = db.lpush("k", 1);
    equal(refused.is_err_and(|error| error.code() == Some("WRONGTYPE")), true)
}

/// A script that is loaded at its first use.
fn script(url: &str) -> Outcome {
    let mut db = connect(url)?;
    let add = Script::new("return {KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1])}");
    equal(add.key("n").arg(5).invoke::<(String, u32)>(&mut db)?, ("n".into(), 5))?;
    equal(add.key("n").arg(2).invoke::<(String, u32)>(&mut db)?, ("n".into(), 7))
}

/// Messages by channel and by pattern.
fn pubsub(url: &str) -> Outcome {
    let (mut db, mut listener) = (connect(url)?, connect(url)?);
    let mut messages = listener.as_pubsub();
    messages.set_read_timeout(Some(Duration::from_secs(10)))?;
    messages.subscribe("news")?;
    messages.psubscribe("n*")?;
    equal(db.publish::<_, _, u32>("news", "hello")?, 2)?;
    for pattern in [None, Some("n*".to_owned())] {
        let message = messages.get_message()?;
        equal(message.get_payload::<String>()?, "hello".into())?;
        equal(message.get_channel_name(), "news")?;
        equal(message.get_pattern::<Option<String>>()?, pattern)?;
    }
    messages.unsubscribe("news")?;
    equal(db.publish::<_, _, u32>("news", "hello")?, 1)
}

/// A shared connection under tokio, and a pop that waits.
#[tokio::main]
async fn asynchronous(url: &str) -> Outcome {
    let client = redis::Client::open(url)?;
    let db = client.get_connection_manager().await?;
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let mut db = db.clone();
            tokio::spawn(async move { db.incr::<_, _, u32>("n", 1).await })
        })
        .collect();
    let mut seen = Vec::new();
    for task in tasks {
        seen.push(task.await??);
    }
    seen.sort_unstable();
    equal(seen, (1..=50).collect())?;
    let mut taker = client.get_multiplexed_async_connection().await?;
    let taken =
        tokio::spawn(async move { taker.blpop::<_, (String, String)>("queue", 10.0).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    () = db.clone().rpush("queue", "job").await?;
    equal(taken.await??, ("queue".into(), "job".into()))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let outcome = match (arguments.get(1).map(String::as_str), arguments.get(2)) {
        (Some("commands"), Some(url)) => commands(url),
        (Some("script"), Some(url)) => script(url),
        (Some("pubsub"), Some(url)) => pubsub(url),
        (Some("asynchronous"), Some(url)) => asynchronous(url),
        _ => Err("usage: lsmkv-compat SCENARIO URL".into()),
    };
    if let Err(error) = outcome {
        println!("FAILED Error: {error}");
        std::process::exit(1);
    }
}
