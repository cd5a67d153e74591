mod rivals;
fn main() {}
