//! Harness: real `redis-server` processes on loopback, and a network that fails on demand.
