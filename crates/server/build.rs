//! A file that is added to `web/` must be embedded too, and the compiler only watches those it knows.

fn main() {
    for folder in ["shell", "portlet", "shared"] {
        println!("cargo::rerun-if-changed=../../web/{folder}");
    }
}
