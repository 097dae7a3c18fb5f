//! Generates the client and the server of the service `shop.BoxOffice`.
//!
//! The service is described in Rust, so the build does not need `protoc`. A project with a `.proto` file calls
//! `tonic_prost_build::compile_protos("box_office.proto")` instead, which also generates the messages.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let service = Service::builder()
        .package("shop")
        .name("BoxOffice")
        .comment("Sells the seats of shows.")
        .method(unary("sell", "Sell", "Sells a seat that is free."))
        .method(unary("take_back", "TakeBack", "Takes back a seat that was sold."))
        .build();
    Builder::new().compile(&[service]);
    println!("cargo:rerun-if-changed=build.rs");
}

fn unary(name: &str, route: &str, comment: &str) -> Method {
    Method::builder()
        .name(name)
        .route_name(route)
        .comment(comment)
        .input_type("crate::messages::Sale")
        .output_type("crate::messages::Ticket")
        .codec_path("tonic_prost::ProstCodec")
        .build()
}
