//! `math.random`: the numbers of `lrand48`, so that a seed draws the same numbers on every machine,
//! and the same as in Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mlua::{Lua, MultiValue, Table};

use super::arguments::number;
use crate::scripting::failure::{bad_argument, text_error};

/// The state of a generator.
#[derive(Debug, Default)]
pub(crate) struct Random(AtomicU64);

impl Random {
    /// Starts a sequence.
    pub(crate) fn seed(&self, seed: u64) {
        self.0.store((seed & 0xFFFF_FFFF) << 16 | 0x330E, Ordering::Relaxed);
    }

    /// Draws a number from 0 to below 1.
    fn draw(&self) -> f64 {
        const MOST: u32 = 0x7FFF_FFFF;
        let state = self.0.load(Ordering::Relaxed);
        let state = state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        self.0.store(state, Ordering::Relaxed);
        f64::from(u32::try_from(state >> 17).unwrap_or(0) % MOST) / f64::from(MOST)
    }
}

/// Adds `random` and `randomseed` to a table.
pub(super) fn add(lua: &Lua, native: &Table, random: &Arc<Random>) -> mlua::Result<()> {
    let own = Arc::clone(random);
    let draw = move |lua: &Lua, args: MultiValue| {
        let drawn = own.draw();
        let whole = |at: usize| number(lua, &args, at, "random").map(f64::trunc);
        let (low, high) = match args.len() {
            0 => return Ok(drawn),
            1 => (1.0, whole(1)?),
            2 => (whole(1)?, whole(2)?),
            _ => return Err(text_error(lua, "wrong number of arguments")),
        };
        if low > high {
            return Err(bad_argument(lua, args.len(), "random", "interval is empty"));
        }
        Ok((drawn * (high - low + 1.0)).floor() + low)
    };
    native.raw_set("random", lua.create_function(draw)?)?;
    let own = Arc::clone(random);
    let seed = move |lua: &Lua, args: MultiValue| {
        let seed = number(lua, &args, 1, "randomseed")?;
        #[expect(clippy::cast_possible_truncation, reason = "Redis takes the low bits")]
        own.seed((seed as i64).cast_unsigned());
        Ok(())
    };
    native.raw_set("randomseed", lua.create_function(seed)?)?;
    Ok(())
}
