//! A node on real servers: what becomes of wake-ups when connections, scripts and permissions come and go.
