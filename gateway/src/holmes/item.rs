//! An object in a list of the body, checked member by member.

use serde_json::value::RawValue;

use super::{
    fields::Fields,
    invalid::{Kind, Loc},
    raw::{self, Members, Type},
};

/// An item of a list of objects.
pub(super) struct Item<'f, 'a> {
    fields: &'f mut Fields<'a>,
    path: [Loc; 2],
    whole: &'a RawValue,
    members: Members<'a>,
}

impl<'f, 'a> Item<'f, 'a> {
    pub(super) fn open(
        fields: &'f mut Fields<'a>,
        list: &'static str,
        index: usize,
        whole: &'a RawValue,
    ) -> Self {
        let path = [Loc::Key(list), Loc::Index(index)];
        let is_object = Type::of(whole) == Type::Object;
        let members = fields.members(whole, Kind::Object, &path);
        // What is not an object has been reported as such, and nothing is missing in it.
        let members = if is_object { members } else { None };
        Self { fields, path, whole, members: members.unwrap_or_default() }
    }

    fn at(&self, name: &'static str) -> Vec<Loc> {
        [&self.path[..], &[Loc::Key(name)]].concat()
    }

    /// A member that is neither missing nor null.
    fn get(&self, name: &'static str) -> Option<&'a RawValue> {
        self.members.get(name).copied().filter(|value| Type::of(value) != Type::Null)
    }

    /// A member that may not be missing.
    fn must(&mut self, name: &'static str) -> Option<&'a RawValue> {
        let value = self.members.get(name).copied();
        if value.is_none() && Type::of(self.whole) == Type::Object {
            let at = self.at(name);
            self.fields.errors.add(Kind::Missing, &at, self.whole);
        }
        value
    }

    pub(super) fn required(&mut self, name: &'static str) -> String {
        let at = self.at(name);
        self.must(name).map(|value| self.fields.text(value, &at)).unwrap_or_default()
    }

    pub(super) fn required_flag(&mut self, name: &'static str) -> bool {
        let at = self.at(name);
        self.must(name).is_some_and(|value| self.fields.boolean(value, &at))
    }

    pub(super) fn optional(&mut self, name: &'static str) -> Option<String> {
        let at = self.at(name);
        self.get(name).map(|value| self.fields.text(value, &at))
    }

    pub(super) fn strings(&mut self, name: &'static str) -> Vec<String> {
        let (at, Some(value)) = (self.at(name), self.get(name)) else { return Vec::new() };
        let Some(items) = raw::items(value) else {
            self.fields.errors.add(Kind::List, &at, value);
            return Vec::new();
        };
        let items = items.into_iter().enumerate();
        items.map(|(index, item)| self.fields.text(item, &[&at[..], &[Loc::Index(index)]].concat())).collect()
    }

    /// The text of an object; empty if there is none.
    pub(super) fn object(&mut self, name: &'static str) -> String {
        let (at, Some(value)) = (self.at(name), self.get(name)) else { return String::new() };
        if Type::of(value) != Type::Object {
            self.fields.errors.add(Kind::Dict, &at, value);
            return String::new();
        }
        value.get().to_owned()
    }

    /// Says what is wrong with a member.
    pub(super) fn wrong(&mut self, name: &'static str, why: &str) {
        let at = self.at(name);
        self.fields.errors.add_value(why, &at, self.whole);
    }
}
