#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    isolde_testing::fuzz::run("history_elle_json", data);
});
