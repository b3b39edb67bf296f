//! What a reader asks for: where to begin, and which events.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName};
use prost_types::Timestamp;
use wire::session::{Cursor, Filter, Search, cursor::Place};

use super::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Events that a list may have.
const MOST: u32 = 1000;
/// Tags that may be looked for together.
const MOST_TAGS: usize = 20;

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

    /// What is looked for among the events, if anything is.
    pub(super) fn search(&self) -> Result<Search, Problem> {
        let text = |name| self.text(name).unwrap_or_default().to_owned();
        let tags = self.0.get("tags").cloned().unwrap_or_default();
        if tags.len() > MOST_TAGS {
            return Err(Problem::bad(format!(
                "tags: {} of them, and at most {MOST_TAGS} may be named",
                tags.len()
            )));
        }
        Ok(Search {
            from: self.time("from_ts")?,
            to: self.time("to_ts")?,
            turn_id: text("turn_id"),
            exec_id: text("exec_id"),
            trace_id: text("trace_id"),
            tags,
            tool_name: text("tool_name"),
            text: text("q"),
        })
    }

    fn time(&self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let time = self.text(name).map(str::parse).transpose();
        time.map_err(|_| Problem::bad(format!("{name} must be a time like 2026-01-31T12:00:00Z")))
    }

    pub(super) fn filter(&self) -> Result<Filter, Problem> {
        let names = |name| self.0.get(name).cloned().unwrap_or_default();
        let no_accumulated = self.flag("accumulated")? == Some(false);
        let (types, exclude) = (names("types"), names("exclude"));
        Ok(Filter { types, exclude, no_accumulated, no_prompts: false })
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

    #[test]
    fn what_is_looked_for_is_read() {
        let search = |query: &str| Query::parse(Some(query)).search();
        assert_eq!(search("").unwrap(), Search::default());
        let found = search("from_ts=2026-01-31T12:00:00.5Z&tags=a&tags=b&tool_name=bash&q=Out+of").unwrap();
        assert_eq!(found.from.unwrap().to_string(), "2026-01-31T12:00:00.500Z");
        assert_eq!((found.tags.len(), &*found.tool_name, &*found.text), (2, "bash", "Out of"));
        assert!(search("to_ts=yesterday").is_err() && search(&"tags=x&".repeat(21)).is_err());
    }
}
