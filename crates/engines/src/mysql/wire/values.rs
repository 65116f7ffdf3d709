//! The contents of packets: numbers, rows and values of the text protocol.

use isolde_model::Value;
use mysql_common::constants::ColumnType;
use mysql_common::packets::Column;

const BINARY_CHARSET: u16 = 63;

pub(super) fn ok_packet(packet: &[u8]) -> (u64, u16) {
    let mut rest = packet.get(1..).unwrap_or_default();
    let affected = length_encoded(&mut rest).unwrap_or(0);
    let _insert_id = length_encoded(&mut rest);
    let status = rest.get(..2).map_or(0, |s| u16::from_le_bytes([s[0], s[1]]));
    (affected, status)
}

pub(super) fn length_encoded(rest: &mut &[u8]) -> Option<u64> {
    let (first, tail) = rest.split_first()?;
    let size = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => {
            *rest = tail;
            return Some(u64::from(*small));
        }
    };
    let bytes = tail.get(..size)?;
    *rest = &tail[size..];
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

pub(super) fn row(columns: &[Column], packet: &[u8]) -> Vec<Value> {
    let mut rest = packet;
    columns
        .iter()
        .map(|column| {
            if rest.first() == Some(&0xfb) {
                rest = &rest[1..];
                return Value::Null;
            }
            let length = usize::try_from(length_encoded(&mut rest).unwrap_or(0)).unwrap_or(0);
            let (bytes, tail) = rest.split_at(length.min(rest.len()));
            rest = tail;
            value(column, bytes)
        })
        .collect()
}

fn value(column: &Column, bytes: &[u8]) -> Value {
    use ColumnType::*;
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match column.column_type() {
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_LONG | MYSQL_TYPE_INT24
        | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_YEAR => {
            let text = text();
            text.parse().map_or(Value::Decimal(text), Value::Int)
        }
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => {
            let text = text();
            text.parse().map_or(Value::Text(text), Value::Float)
        }
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => Value::Decimal(text()),
        MYSQL_TYPE_BIT => Value::Bytes(bytes.to_vec()),
        MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_BLOB
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_VARCHAR
        | MYSQL_TYPE_GEOMETRY
            if column.character_set() == BINARY_CHARSET =>
        {
            Value::Bytes(bytes.to_vec())
        }
        _ => Value::Text(text()),
    }
}
