#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    isolde_testing::fuzz::run("driver_message", data);
});
