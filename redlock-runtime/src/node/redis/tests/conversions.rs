//! Scripts at a server that pauses between their commands, or refuses one of them. The client does not clean up.
//!
//! Since version 7, a server runs a script at one point of its time. An older server reads its clock again for each command.

use super::{KEY, TTL};
use crate::lock::OwnerToken;
use crate::lock::owner_token::ManagerId;
use crate::node::redis::channels::Channels;
use crate::node::redis::script::{LETTERS, SHARE, Scripts, millis};
use crate::node::redis::side_key::queue_name;
use crate::protocol::timing::CLAIM;
use crate::time::token_clock::TokenTime;
use redlock_tests::RedisServer;

/// Replaces `redis` in a script. By the clock that the script reads, 100 ms pass after each command.
const PAUSES: &str = "
local server, micros = redis, 0
local function paused(run)
  return function(verb, ...)
    local answer = run(verb, ...)
    if verb == 'TIME' then
      local time = answer[1] * 1000000 + answer[2] + micros
      answer = {string.format('%.0f', math.floor(time / 1000000)), string.format('%.0f', time % 1000000)}
    elseif verb == 'PTTL' and type(answer) == 'number' and answer > 0 then
      answer = answer - micros / 1000
    end
    micros = micros + 100000
    return answer
  end
end
local redis = {call = paused(server.call), pcall = paused(server.pcall), error_reply = server.error_reply}
";

/// Replaces `redis` in a script. `PEXPIRE` is refused.
const REFUSES: &str = "
local server = redis
local function refused(run)
  return function(verb, ...)
    return verb == 'PEXPIRE' and run('UNKNOWN') or run(verb, ...)
  end
end
local redis = {call = refused(server.call), pcall = refused(server.pcall), error_reply = server.error_reply}
";

/// Returns the script with this `name`, after the `prefix`.
fn script(prefix: &str, name: &str) -> String {
    let (_, source) = Scripts::SOURCES.iter().find(|(known, _)| *known == name).unwrap();
    [prefix, &Channels::of_server("").in_script(source)].concat()
}

fn token(time: u64) -> OwnerToken {
    OwnerToken::new(ManagerId::numbered(7), TokenTime::new(time, 0))
}

#[tokio::test]
async fn lease_of_a_single_holder_does_not_end_earlier_after_a_pause() {
    let (script, server) = (script(PAUSES, "share_acquire"), RedisServer::start().await);
    let inspect = server.inspect();
    let ([holder, reader], ttl) = ([1, 2].map(token), millis(TTL).to_string());
    let value = format!("{holder}{}", LETTERS[0].0);
    inspect.command::<()>(&["SET", KEY, &value, "PX", &ttl]).await;
    let [seconds, micros]: [u64; 2] = inspect.command(&["TIME"]).await;
    let left: u64 = inspect.command(&["PTTL", KEY]).await;
    let end = seconds * 1000 + micros / 1000 + left;
    let claim = millis(CLAIM).to_string();
    let words = ["EVAL", &script, "2", KEY, &queue_name(KEY), reader.as_str(), &ttl, &claim];
    let reply: Vec<redis::Value> = inspect.command(&words).await;
    assert_eq!(reply.first(), Some(&redis::Value::Int(1)), "granted: {reply:?}");
    let score: u64 = inspect.command(&["ZSCORE", KEY, holder.as_str()]).await;
    assert!(score - SHARE >= end, "{} ms early", end - (score - SHARE));
}

#[tokio::test]
async fn waiter_whose_expiry_is_refused_leaves_no_queue() {
    let (script, server) = (script(REFUSES, "acquire"), RedisServer::start().await);
    let inspect = server.inspect();
    let ([holder, waiter], ttl) = ([1, 2].map(token), millis(TTL).to_string());
    inspect.command::<()>(&["SET", KEY, holder.as_str(), "PX", &ttl]).await;
    let claim = millis(CLAIM).to_string();
    let words = ["EVAL", &script, "2", KEY, &queue_name(KEY), waiter.as_str(), &ttl, &claim];
    inspect.try_command::<redis::Value>(&words).await.unwrap_err();
    assert_eq!(inspect.keys().await, [KEY]);
    assert_eq!(inspect.get(KEY).await.as_deref(), Some(holder.as_str()));
}
