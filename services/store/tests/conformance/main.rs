//! What every store promises, one suite for all of them.

#![cfg(test)]

mod accounts;
mod events;
mod logs;
mod ownership;
mod pooler;
mod postgres;
mod rest;
mod sqlite;
mod stores;
