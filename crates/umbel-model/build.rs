//! Lets `umbel::sync` take its locks from the scheduler.

fn main() {
    println!("cargo::rustc-cfg=umbel_model");
    println!("cargo::rerun-if-changed=build.rs");
}
