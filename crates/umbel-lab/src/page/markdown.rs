//! Markdown to HTML, for texts of our own: module headers and `docs/papers.md`.

use pulldown_cmark::{Event, Options, Parser, Tag, html};

/// The text as HTML. Links are removed and their text is kept: links to code and to other documents
/// do not work in a standalone page.
pub(super) fn to_html(text: &str) -> String {
    let text = text.replace("[`", "`").replace("`]", "`");
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES).filter(|event| {
        let is_link = matches!(event, Event::Start(Tag::Link { .. }));
        !is_link && !matches!(event, Event::End(pulldown_cmark::TagEnd::Link))
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_code_and_links_are_words() {
        let html = to_html("Ours: `1 < 2` of [`Thing`], see [there](x.md).\n\n* **a**\n");
        assert!(html.contains("<code>1 &lt; 2</code>"), "{html}");
        assert!(html.contains("<code>Thing</code>, see there."), "{html}");
        assert!(html.contains("<li><strong>a</strong></li>"), "{html}");
    }
}
