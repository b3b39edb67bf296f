//! What a reader asks for: where to begin, and which events.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName};
use wire::session::{Cursor, Filter, cursor::Place};

use super::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Events that a list may have.
const MOST: u32 = 1000;

/// The query of a request. Names may come more than once.
#[derive(Debug, Default)]
pub(super) struct Query(HashMap<String, Vec<String>>);

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let mut fields: HashMap<String, Vec<String>> = HashMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            fields.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Self(fields)
    }

    /// The last value of a name; an empty one is none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<i128>() {
            Ok(number) if number < 0 => Err(Problem::bad(format!("{name} must be >= 0"))),
            Ok(number) => {
                u64::try_from(number).map(Some).map_err(|_| Problem::bad(format!("{name} is too large")))
            }
            Err(_) => Err(Problem::bad(format!("{name} must be a whole number"))),
        }
    }

    pub(super) fn flag(&self, name: &'static str) -> Result<Option<bool>, Problem> {
        match self.text(name) {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(Problem::bad(format!("{name} must be true or false"))),
        }
    }

    /// How many events a list is to have; zero if that is not said.
    pub(super) fn limit(&self) -> Result<u32, Problem> {
        match self.number("limit")? {
            None => Ok(0),
            Some(limit) if (1..=u64::from(MOST)).contains(&limit) => Ok(u32::try_from(limit).unwrap_or(MOST)),
            Some(_) => Err(Problem::bad(format!("limit must be between 1 and {MOST}"))),
        }
    }

    /// Where to begin: after an event that the query names. A browser comes back with the URL that it began with, so
    /// that the header of a reader who comes back beats the number that it began after.
    pub(super) fn cursor(&self, headers: &HeaderMap) -> Result<Option<Cursor>, Problem> {
        let last = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?"));
        let last = last.filter(|id| !id.is_empty());
        let place = match (self.text("since_id"), last, self.number("after_sequence")?) {
            (Some(_), _, Some(_)) => {
                return Err(Problem::bad("since_id and after_sequence are mutually exclusive"));
            }
            (Some(id), _, None) | (None, Some(id), _) => Some(Place::SinceId(id.to_owned())),
            (None, None, sequence) => sequence.map(Place::AfterSequence),
        };
        Ok(place.map(|place| Cursor { place: Some(place) }))
    }

    pub(super) fn filter(&self) -> Result<Filter, Problem> {
        let names = |name| self.0.get(name).cloned().unwrap_or_default();
        let no_accumulated = self.flag("accumulated")? == Some(false);
        Ok(Filter { types: names("types"), exclude: names("exclude"), no_accumulated })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn place(query: &str, header: &str) -> Result<Option<Place>, Problem> {
        let headers = HeaderMap::from_iter([(LAST_EVENT_ID, HeaderValue::from_str(header).unwrap())]);
        Ok(Query::parse(Some(query)).cursor(&headers)?.and_then(|cursor| cursor.place))
    }

    #[test]
    fn an_event_of_the_query_beats_the_header_and_the_header_a_number() {
        assert_eq!(place("", "").unwrap(), None);
        assert_eq!(place("", "event_1").unwrap(), Some(Place::SinceId("event_1".into())));
        assert_eq!(place("after_sequence=0", "").unwrap(), Some(Place::AfterSequence(0)));
        assert_eq!(place("after_sequence=0", "event_1").unwrap(), Some(Place::SinceId("event_1".into())));
        assert_eq!(place("since_id=event_2", "event_1").unwrap(), Some(Place::SinceId("event_2".into())));
        for bad in ["since_id=a&after_sequence=1", "after_sequence=-1", "after_sequence=x"] {
            assert!(place(bad, "event_1").is_err(), "{bad}");
        }
    }

    #[test]
    fn names_may_come_more_than_once() {
        let query = Query::parse(Some("types=turn.started&types=turn.completed&accumulated=false"));
        let filter = query.filter().unwrap();
        assert_eq!(filter.types, ["turn.started", "turn.completed"]);
        assert!(filter.no_accumulated && filter.exclude.is_empty());
        assert!(Query::parse(Some("limit=0")).limit().is_err());
        assert_eq!(Query::parse(Some("limit=7")).limit().unwrap(), 7);
    }
}
