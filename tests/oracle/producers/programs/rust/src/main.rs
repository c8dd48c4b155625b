//! Answers on stdout what the crate picks for the questions on stdin; see `tests/oracle/producers/questions.py`.

use std::io::{self, BufRead};

use rocketmq::exposed;

fn main() {
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        let size = fields[2].split(',').filter(|queue| !queue.is_empty()).count();
        match fields[0] {
            "hash" => println!("{}", exposed::by_message_group(size, text(fields[1]))),
            _ => {
                let times = fields[3].split(';').count();
                let picks = exposed::taken(size, fields[1].parse().unwrap(), times);
                println!("{}", picks.iter().map(i32::to_string).collect::<Vec<_>>().join(";"));
            }
        }
    }
}

/// UTF-16 as hexadecimal digits.
fn text(hex: &str) -> String {
    let units: Vec<u16> = hex
        .as_bytes()
        .chunks(4)
        .map(|unit| u16::from_str_radix(std::str::from_utf8(unit).unwrap(), 16).unwrap())
        .collect();
    String::from_utf16(&units).unwrap()
}
