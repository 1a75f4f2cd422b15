//! The expected values are what redis-server 7.0.15 on x86-64 replies to INCRBYFLOAT.

use super::*;
use crate::error::ErrorKind;

fn sum(a: &str, b: &str) -> String {
    add_long_double(a.as_bytes(), b.as_bytes()).unwrap()
}

fn failure(a: &str, b: &str) -> ErrorKind {
    add_long_double(a.as_bytes(), b.as_bytes()).unwrap_err().kind()
}

#[test]
fn sums_are_those_of_the_reference() {
    for (a, b, expected) in [
        ("10.50", "0.1", "10.6"),
        ("3.0e3", "200", "3200"),
        ("0.1", "0.2", "0.3"),
        ("0.3", "-0.1", "0.2"),
        ("-3.3", "3.3", "0"),
        ("5.", "+.5", "5.5"),
        ("1e0001", "1e+2", "110"),
        ("0x1p4", "0x.8", "16.5"),
        ("0x1.8p1", "0X1P1", "5"),
        ("0e99999999", "1", "1"),
        ("9007199254740993", "0.5", "9007199254740993.5"),
        ("123456789.123456789123456789", "0.000000000000000001", "123456789.12345678912242875"),
        ("1e18", "0.05", "1000000000000000000.0625"),
    ] {
        assert_eq!(sum(a, b), expected, "{a} + {b}");
        assert_eq!(sum(b, a), expected, "{b} + {a}");
    }
}

#[test]
fn a_mantissa_has_64_bits_and_rounds_to_even() {
    assert_eq!(sum("18446744073709551615", "1"), "18446744073709551616");
    assert_eq!(sum("18446744073709551616", "1"), "18446744073709551616");
    assert_eq!(sum("1e19", "-0.5"), "10000000000000000000");
    assert_eq!(sum("1e30", "1e12"), "1000000000000000001055488212992");
    assert_eq!(
        sum("99999999999999999999999999999999999999", "1"),
        "99999999999999999999312600448599326720"
    );
    assert_eq!(sum("1", "0.00000000000000000005"), "1");
}

#[test]
fn seventeen_places_are_printed_and_zero_has_no_sign() {
    for (a, expected) in [
        ("-0", "0"),
        ("-1e-18", "0"),
        ("1e-17", "0.00000000000000001"),
        ("5e-18", "0"),
        ("1.5e-17", "0.00000000000000002"),
    ] {
        assert_eq!(sum(a, "0"), expected, "{a}");
    }
    let long = format!("0.{}", "1".repeat(5117));
    assert_eq!(sum(&long, "0"), "0.11111111111111111");
}

#[test]
fn the_range_is_that_of_fifteen_exponent_bits() {
    let large = sum("1e4932", "0");
    assert_eq!((large.len(), &large[..40]), (4933, "1000000000000000000006018949387963891323"));
    assert_eq!(failure("1e4932", "1e4932"), ErrorKind::Overflow);
    assert_eq!(failure("1e4933", "0"), ErrorKind::NotFloat);
    assert_eq!(sum("1e-4950", "0"), "0");
    assert_eq!(sum("3.6e-4951", "0"), "0");
    assert_eq!(failure("1e-4951", "0"), ErrorKind::NotFloat);
    assert_eq!(failure("1e99999999999999999999", "0"), ErrorKind::NotFloat);
    for infinite in ["inf", "-inf", "InFinity"] {
        assert_eq!(failure(infinite, "0"), ErrorKind::Overflow);
        assert_eq!(failure("0", infinite), ErrorKind::Overflow);
    }
}

#[test]
fn what_is_no_number_is_refused() {
    let long = "1".repeat(5120);
    for text in [
        "", ".", "nan", " 1", "\t1", "1 ", "1e", "1e 2", "0x", "0x.", "0x1p", "--1", "+-1", "1e+",
        "1\0", "infin", &long,
    ] {
        assert_eq!(failure(text, "1"), ErrorKind::NotFloat, "{text:?}");
    }
}

#[test]
fn what_is_lost_below_the_guard_bits_still_decides_a_tie() {
    // 2^63 + 0.5 lies halfway; a little less than that rounds down, a little more up.
    let half = "9223372036854775808.5";
    assert_eq!(sum("9223372036854775808", "0.5"), "9223372036854775808");
    assert_eq!(sum(half, "0"), "9223372036854775808");
    assert_eq!(sum("9223372036854775808", "0x1.000000000000001p-1"), "9223372036854775809");
    // 2^64 - 2^-100 is nearest to 2^64, whose predecessor is 2^64 - 1.
    assert_eq!(sum("0x1p64", "-0x1p-100"), "18446744073709551616");
    assert_eq!(sum("0x1p64", "-0.75"), "18446744073709551615");
    assert_eq!(sum("0x1p64", "-0.5"), "18446744073709551616");
}
