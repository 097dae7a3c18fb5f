//! Minimal client of the language server protocol.

use crate::project::Project;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command as Blocking, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than the build of the macros and the analysis of all crates take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// # Errors
/// The missing tool, and how to install it.
pub(crate) fn check_required_tools() -> Result<(), &'static str> {
    let output = |program: &str, argument: &[&str]| {
        let output = Blocking::new(program).args(argument).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    if output("rust-analyzer", &["--version"]).is_none() {
        return Err("it is not installed: run `rustup component add rust-analyzer`");
    }
    let sysroot = output("rustc", &["--print", "sysroot"]).expect("the compiler that has built this");
    if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core").exists() {
        return Err("the sources of the standard library are not installed: run `rustup component add rust-src`");
    }
    Ok(())
}

/// A running rust-analyzer that has read a project; killed when dropped.
pub(crate) struct LanguageServer {
    _process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    uri: String,
    last_request: u64,
}

impl LanguageServer {
    pub(crate) async fn start(project: &Project) -> Self {
        // Shares the target folder of the tests, which contains the compiled macros.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let mut command = Command::new("rust-analyzer");
        command.current_dir(&project.folder).env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut server = Self { _process: process, stdin, stdout, uri: project.uri(), last_request: 0 };
        server.open(project).await;
        server
    }

    /// Opens the project, and waits until rust-analyzer has read all of it.
    async fn open(&mut self, project: &Project) {
        let capabilities = json!({
            "experimental": { "serverStatusNotification": true },
            "textDocument": { "completion": { "completionItem": { "documentationFormat": ["markdown"] } } },
        });
        let build = ["cargo", "build", "--quiet", "-p", "redlock-macros", "--message-format=json"];
        let options = json!({
            "cachePriming": { "enable": false },
            "cargo": { "buildScripts": { "overrideCommand": build } },
            "checkOnSave": false,
        });
        let root = format!("file://{}", project.folder.display());
        self.request(
            "initialize",
            json!({ "rootUri": root, "capabilities": capabilities, "initializationOptions": options }),
        )
        .await;
        self.send(&json!({ "method": "initialized", "params": {} })).await;
        let document = json!({ "uri": self.uri, "languageId": "rust", "version": 1, "text": project.source });
        self.send(&json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } })).await;
        loop {
            let message = self.receive().await;
            if message["method"] == "experimental/serverStatus" && message["params"]["quiescent"] == true {
                return;
            }
        }
    }

    pub(crate) async fn hover(&mut self, position: Value) -> String {
        let hover = self.at("textDocument/hover", position, json!({})).await;
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the definitions, in the project, of the symbol at the position.
    pub(crate) async fn definitions(&mut self, position: Value) -> Vec<Value> {
        let found = self.at("textDocument/definition", position, json!({})).await;
        let found = found.as_array().cloned().unwrap_or_default();
        found
            .iter()
            .filter(|location| location["uri"] == self.uri)
            .map(|location| location["range"]["start"].clone())
            .collect()
    }

    /// Returns the edits of the source for a rename.
    pub(crate) async fn rename(&mut self, position: Value, name: &str) -> Vec<Value> {
        let edit = self.at("textDocument/rename", position, json!({ "newName": name })).await;
        edit["documentChanges"][0]["edits"].as_array().unwrap_or_else(|| panic!("{edit}")).clone()
    }

    /// Returns the names that can be completed at the position, with their details.
    pub(crate) async fn completions(&mut self, position: Value) -> Vec<(String, String)> {
        let found = self.at("textDocument/completion", position, json!({})).await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = found["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| (text(&item["label"]), text(&item["documentation"]["value"]))).collect()
    }

    /// Sends a request about a position in the source.
    async fn at(&mut self, method: &str, position: Value, mut params: Value) -> Value {
        params["textDocument"] = json!({ "uri": self.uri });
        params["position"] = position;
        self.request(method, params).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_request += 1;
        self.send(&json!({ "id": self.last_request, "method": method, "params": params })).await;
        loop {
            let mut message = self.receive().await;
            if message["id"] == self.last_request && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
        }
    }

    async fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        let text = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        self.stdin.write_all(text.as_bytes()).await.unwrap();
        self.stdin.flush().await.unwrap();
    }

    /// Returns the next message. Refuses the server's own requests.
    async fn receive(&mut self) -> Value {
        let message = timeout(PATIENCE, self.read()).await.expect("the server says something");
        if message.get("method").is_some() && message.get("id").is_some() {
            self.send(&json!({ "id": message["id"], "result": null })).await;
        }
        message
    }

    async fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).await.unwrap() > 0, "the server has ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.stdout.read_exact(&mut text).await.unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}
