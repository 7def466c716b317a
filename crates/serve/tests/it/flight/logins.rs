//! Guessing passwords, and tokens.

use std::time::{Duration, Instant};

use arrow_flight::sql::client::FlightSqlServiceClient;
use coload_serve::{Credentials, ServeLimits};
use coload_types::Error;
use tokio::runtime::Runtime;

use super::statements::csv;
use super::{channel, limited_users, try_channel};

#[test]
fn a_peer_that_guesses_waits_and_whoever_was_right_before_does_not() {
    let running = limited_users(ServeLimits::default());
    let mut known = running.client_of("ada", "ada").unwrap();
    let mut guessed = 0;
    let refused = loop {
        match running.client_of("rob", &format!("guess {guessed}")) {
            Err(Error::Refused(_)) => guessed += 1,
            other => break other.unwrap_err(),
        }
        assert!(guessed < 50, "nobody stops the guesses");
    };
    assert!(matches!(&refused, Error::Limit(t) if t.contains("wrong passwords")), "{refused}");
    // The same address, with a password that was right before, and with a token.
    assert_eq!(csv(&mut running.client_of("ada", "ada").unwrap(), "SELECT 1"), "1\n");
    assert_eq!(csv(&mut known, "SELECT 2"), "2\n");
}

/// 200 streams that guessed made a login take 3.5 s.
#[test]
fn many_guesses_at_once_do_not_delay_those_who_are_in() {
    let running = limited_users(ServeLimits::default());
    drop(running.client_of("ada", "ada").unwrap());
    let address = running.address;
    let runtime = Runtime::new().unwrap();
    let guesses: Vec<_> = (0..200)
        .map(|number| {
            runtime.spawn(async move {
                let Ok(channel) = try_channel(address).await else { return true };
                let mut sql = FlightSqlServiceClient::new(channel);
                sql.handshake("rob", &format!("guess {number}")).await.is_err()
            })
        })
        .collect();
    let started = Instant::now();
    // A connection may have to be made again, as newer ones of the same address come.
    let mut client = loop {
        match running.client_of("ada", "ada") {
            Ok(client) => break client,
            Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error}"),
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    };
    assert_eq!(csv(&mut client, "SELECT 1"), "1\n");
    for guess in guesses {
        assert!(runtime.block_on(guess).unwrap());
    }
}

/// 65,536 tokens of 24 hours each could be taken.
#[test]
fn a_user_has_so_many_tokens_and_the_oldest_goes() {
    let running = limited_users(ServeLimits { tokens_per_user: 2, ..ServeLimits::default() });
    let tokens: Vec<String> = Runtime::new().unwrap().block_on(async {
        let mut tokens = Vec::new();
        for _ in 0..3 {
            let mut sql = FlightSqlServiceClient::new(channel(running.address).await);
            sql.handshake("rob", "rob").await.unwrap();
            tokens.push(sql.token().unwrap().clone());
        }
        tokens
    });
    let works: Vec<bool> = tokens
        .into_iter()
        .map(|token| {
            let credentials = Credentials { token: Some(token), ..Credentials::default() };
            let client = coload_serve::Remote::connect(running.url(), &credentials);
            client.unwrap().query("SELECT 1").is_ok()
        })
        .collect();
    assert_eq!(works, [false, true, true]);
}
