//! From an HTML page to Markdown.

use std::rc::Rc;

use htmd::options::{BulletListMarker, Options};
use htmd::{HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;
use url::Url;

use crate::content::keep_visible;

/// The maximum nesting depth of the elements of a page. It is limited because the conversion is recursive.
const DEPTH_MAX: usize = 256;

/// The length to which a title is cut, in characters.
const TITLE_CHARS_MAX: usize = 300;

/// Elements that are not text. `noscript` is text, because no script runs.
const NOT_TEXT: [&str; 11] = [
    "audio", "canvas", "embed", "head", "iframe", "object", "script", "style", "svg", "template", "video",
];

/// Elements around the main content of a page.
const NOT_CONTENT: [&str; 7] = ["aside", "button", "dialog", "footer", "form", "menu", "nav"];

/// The part of a page that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The main content.
    Content,
    /// Everything that a reader sees.
    Everything,
}

/// The readable part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable {
    /// The title.
    pub title: Option<String>,
    /// The text, as Markdown.
    pub markdown: String,
}

/// Converts a page to Markdown. Links become absolute.
///
/// # Errors
/// If the page cannot be parsed, or its elements are nested too deeply.
pub fn readable(html: &str, url: &Url, extent: Extent) -> Result<Readable, String> {
    let parser = HtmlToMarkdown::builder().scripting_enabled(false).build();
    let tree = parser
        .html_to_tree(html)
        .map_err(|error| format!("the page cannot be parsed: {error}"))?;
    let outline = Outline::of(&tree, url)?;
    let main = outline.main.filter(|_| extent == Extent::Content);
    let mut skipped = NOT_TEXT.to_vec();
    if extent == Extent::Content {
        skipped.extend(NOT_CONTENT);
        // The header of the main content contains its heading; the header of a page contains the menu.
        skipped.extend(main.is_none().then_some("header"));
    }
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).skip_tags(skipped).build();
    let root = main.map_or(tree, |main| as_document(&main));
    // Entities such as `&#27;` are characters only after parsing.
    Ok(Readable {
        title: outline.title.map(|title| keep_visible(&title)),
        markdown: keep_visible(&converter.tree_to_markdown(&root)),
    })
}

/// Returns a document with the content of an element.
fn as_document(element: &Node) -> Rc<Node> {
    let document = Node::new(NodeData::Document);
    document.children.replace(element.children.take());
    document
}

/// The title and the main element of a page.
#[derive(Default)]
struct Outline {
    title: Option<String>,
    /// The only `main` element; else the only `article`.
    main: Option<Rc<Node>>,
}

impl Outline {
    /// Walks through a page, and makes its links absolute. The walk is not recursive, so that its depth can be checked.
    fn of(tree: &Rc<Node>, url: &Url) -> Result<Self, String> {
        let (mut title, mut mains, mut articles) = (None, Vec::new(), Vec::new());
        let mut base = url.clone();
        let mut pending = vec![(Rc::clone(tree), 0)];
        while let Some((node, depth)) = pending.pop() {
            if depth > DEPTH_MAX {
                return Err(format!(
                    "the elements of the page are nested more than {DEPTH_MAX} deep; fetch its source"
                ));
            }
            if let NodeData::Element { name, .. } = &node.data {
                match &*name.local {
                    "title" if title.is_none() => title = Some(text_of(&node)),
                    "main" => mains.push(Rc::clone(&node)),
                    "article" => articles.push(Rc::clone(&node)),
                    "base" => make_absolute(&node, "href", &mut base, true),
                    "a" => make_absolute(&node, "href", &mut base, false),
                    "img" => make_absolute(&node, "src", &mut base, false),
                    _ => {}
                }
            }
            let children = node.children.borrow();
            // In reverse, so that the first child is the next node: a `base` concerns the links after it.
            pending.extend(children.iter().rev().map(|child| (Rc::clone(child), depth + 1)));
        }
        let only = |mut nodes: Vec<Rc<Node>>| nodes.pop().filter(|_| nodes.is_empty());
        Ok(Self {
            title: title.filter(|title| !title.is_empty()),
            main: only(mains).or_else(|| only(articles)),
        })
    }
}

/// Makes a link absolute. A link of another scheme than `http`, `https` and `mailto` is removed, because a reader needs no
/// script or data. With `is_base`, the link does not change, and becomes the base of the links after it.
fn make_absolute(node: &Node, attribute: &str, base: &mut Url, is_base: bool) {
    let NodeData::Element { attrs, .. } = &node.data else {
        return;
    };
    for attr in attrs
        .borrow_mut()
        .iter_mut()
        .filter(|attr| &*attr.name.local == attribute)
    {
        let target = base.join(attr.value.trim());
        let target = target
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https" | "mailto"));
        if is_base {
            *base = target.unwrap_or_else(|| base.clone());
            return;
        }
        attr.value = target.map(String::from).unwrap_or_default().into();
    }
}

/// Returns the text of an element, with single spaces.
fn text_of(node: &Node) -> String {
    let mut text = String::new();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            text.push_str(&contents.borrow());
        }
    }
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(TITLE_CHARS_MAX).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn page(html: &str, extent: Extent) -> Readable {
        readable(html, &Url::parse("https://example.com/docs/page").unwrap(), extent).unwrap()
    }

    #[test]
    fn content_keeps_its_structure() {
        let html = "<html><head><title> A\n page </title><style>p{}</style></head><body><nav>Menu</nav>\
                    <main><h1>Head</h1><p>Some <b>bold</b> and <code>code</code>.</p><ul><li>one<li>two</ul>\
                    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>\
                    <pre><code>x = 1\ny</code></pre><script>alert(1)</script></main><footer>Foot</footer>";
        let content = page(html, Extent::Content);
        assert_eq!(content.title.as_deref(), Some("A page"));
        for part in ["# Head", "**bold**", "`code`", "- one\n- two", "| a", "| 1", "x = 1\ny"] {
            assert!(content.markdown.contains(part), "{part} is not in {}", content.markdown);
        }
        for part in ["Menu", "Foot", "alert", "p{}", "A page"] {
            assert!(!content.markdown.contains(part), "{part} is in {}", content.markdown);
        }
        let everything = page(html, Extent::Everything).markdown;
        assert!(
            everything.contains("Menu") && everything.contains("Foot"),
            "{everything}"
        );
        assert!(!everything.contains("alert"), "{everything}");
    }

    #[test]
    fn links_are_absolute_and_run_nothing() {
        let html = "<a href='../x?a=1&amp;b=2'>up</a> <a href='javascript:alert(1)'>run</a> <img src=i.png alt=pic>\
                    <a href='mailto:a@b.test'>mail</a>";
        let markdown = page(html, Extent::Content).markdown;
        assert!(markdown.contains("[up](https://example.com/x?a=1&b=2)"), "{markdown}");
        assert!(
            markdown.contains("![pic](https://example.com/docs/i.png)"),
            "{markdown}"
        );
        assert!(markdown.contains("mailto:a@b.test"), "{markdown}");
        assert!(
            markdown.contains("run") && !markdown.contains("javascript"),
            "{markdown}"
        );
        let based = page("<base href='https://other.test/d/'><a href=e>x</a>", Extent::Content);
        assert!(based.markdown.contains("https://other.test/d/e"), "{}", based.markdown);
    }

    #[test]
    fn control_characters_are_no_way_in_as_entities() {
        let page = page(
            "<title>a&#27;b&#8238;</title><p>c&#27;[2J&#155;&#x202e;d&#9;",
            Extent::Content,
        );
        assert_eq!(page.title.as_deref(), Some("ab"));
        let invisible = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!page.markdown.chars().any(invisible), "{:?}", page.markdown);
    }

    #[test]
    fn broken_html_is_read_as_far_as_it_goes() {
        let markdown = page("<p>one<p>two</b></table><li>three &amp; &#x41; &nope;", Extent::Content).markdown;
        for part in ["one", "two", "three & A"] {
            assert!(markdown.contains(part), "{markdown}");
        }
        assert_eq!(page("", Extent::Content).markdown, "");
    }

    #[test]
    fn deeply_nested_page_is_refused() {
        let html = "<div>".repeat(10_000);
        let url = Url::parse("https://example.com/").unwrap();
        let error = readable(&html, &url, Extent::Content).unwrap_err();
        assert!(error.contains("nested"), "{error}");
    }
}
