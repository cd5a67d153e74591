//! The port for Redis clients: RESP2 and RESP3, pipelined.

pub mod request;
