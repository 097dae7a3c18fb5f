//! Tests of the harness, on which all other tests rely.

mod layers;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod name_service;
mod nodes;
mod proxy;
mod server;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod servers_script;
