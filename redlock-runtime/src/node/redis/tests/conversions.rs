//! Conversion of a single holder to a set, at a server that pauses between the commands of a script.
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

fn token(time: u64) -> OwnerToken {
    OwnerToken::new(ManagerId::numbered(7), TokenTime::new(time, 0))
}

#[tokio::test]
async fn lease_of_a_single_holder_does_not_end_earlier_after_a_pause() {
    let (source, server) =
        (Scripts::SOURCES.iter().find(|(name, _)| *name == "share_acquire"), RedisServer::start().await);
    let (_, source) = source.unwrap();
    let script = [PAUSES, &Channels::of_server("").in_script(source)].concat();
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
