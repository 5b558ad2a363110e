wit_bindgen::generate!({ path: "wit" });

use acme::library::types::{Book, Genre, Marks, ShelfError};
use exports::acme::library::catalog::{Guest, GuestShelf, Shelf, Summary};
use std::cell::RefCell;

struct Library;
struct MyShelf { name: String, capacity: u32, books: RefCell<Vec<Book>> }
export!(Library);

impl GuestShelf for MyShelf {
    fn new(name: String, capacity: u32) -> Self { Self { name, capacity, books: RefCell::default() } }
    fn id(&self) -> String { self.name.clone() }
    fn describe(&self) -> Summary {
        let books = self.books.borrow();
        Summary { name: self.name.clone(), count: books.len() as u32, titles: books.iter().map(|b| b.title.clone()).collect() }
    }
    fn put(&self, book: Book) -> Result<u32, ShelfError> {
        let mut books = self.books.borrow_mut();
        if books.len() as u32 >= self.capacity { return Err(ShelfError::Full(self.capacity)); }
        books.push(book);
        Ok(books.len() as u32)
    }
    fn take(&self, title: String) -> Result<Book, ShelfError> {
        let mut books = self.books.borrow_mut();
        let at = books.iter().position(|b| b.title == title).ok_or(ShelfError::NotFound(title))?;
        Ok(books.remove(at))
    }
    fn books(&self, genre: Option<Genre>) -> Vec<Book> {
        self.books.borrow().iter().filter(|b| genre.is_none_or(|g| g == b.type_)).cloned().collect()
    }
    fn close(shelf: Shelf) -> Vec<String> {
        shelf.into_inner::<MyShelf>().books.into_inner().into_iter().map(|book| book.title).collect()
    }
}

impl Guest for Library {
    type Shelf = MyShelf;
    fn open_shelf(name: String) -> Result<Shelf, ShelfError> {
        match name.as_str() {
            "a" | "b" => Ok(Shelf::new(MyShelf::new(name, 2))),
            _ => Err(ShelfError::NotFound(name)),
        }
    }
    fn open_shelves(names: Vec<String>) -> Vec<Shelf> {
        names.into_iter().map(|name| Shelf::new(MyShelf::new(name, 2))).collect()
    }
    fn checksum(data: Vec<u8>) -> u64 { data.iter().map(|b| u64::from(*b)).sum() }
    fn longest(words: Vec<String>) -> Option<String> { words.into_iter().max_by_key(String::len) }
    fn parse_book(line: String) -> Result<Book, String> {
        let (title, author) = line.split_once(" by ").ok_or("there is no ` by `")?;
        Ok(Book { title: title.into(), pages: None, authors: vec![author.into()], type_: Genre::Fiction, marks: Marks::NEW_ARRIVAL, position: (1, 0.5) })
    }
    fn fail() -> Result<(), ShelfError> { Err(ShelfError::Closed) }
}
