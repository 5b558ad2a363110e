#include <string>
#include "plugin_cpp.h"

namespace exports::acme::library::catalog {

static Book Copy(const Book &b) {
  return Book{b.title, b.pages, wit::vector<wit::string>::from_view(b.authors.get_const_view()), b.type, b.marks, b.position};
}

Shelf::Shelf(wit::string name, uint32_t capacity) : name(name.to_string()), capacity(capacity) {}
Shelf::~Shelf() = default;

wit::string Shelf::Id() { return wit::string::from_view(name); }

Summary Shelf::Describe() {
  auto titles = wit::vector<wit::string>::allocate(content.size());
  for (size_t i = 0; i < content.size(); i++) titles.initialize(i, wit::string(content[i].title));
  return Summary{wit::string::from_view(name), uint32_t(content.size()), std::move(titles)};
}

std::expected<uint32_t, ShelfError> Shelf::Put(Book book) {
  if (content.size() >= capacity) return std::unexpected(ShelfError{ShelfError::Full{capacity}});
  content.push_back(std::move(book));
  return content.size();
}

std::expected<Book, ShelfError> Shelf::Take(wit::string title) {
  for (size_t i = 0; i < content.size(); i++) {
    if (content[i].title.get_view() == title.get_view()) {
      Book book = std::move(content[i]);
      content.erase(content.begin() + i);
      return book;
    }
  }
  return std::unexpected(ShelfError{ShelfError::NotFound{std::move(title)}});
}

wit::vector<Book> Shelf::Books(std::optional<Genre> genre) {
  std::vector<const Book *> found;
  for (auto &book : content)
    if (!genre || *genre == book.type) found.push_back(&book);
  auto books = wit::vector<Book>::allocate(found.size());
  for (size_t i = 0; i < found.size(); i++) books.initialize(i, Copy(*found[i]));
  return books;
}

wit::vector<wit::string> Shelf::Close(Shelf::Owned shelf) { return std::move(shelf->Describe().titles); }

std::expected<Shelf::Owned, ShelfError> OpenShelf(wit::string name) {
  if (name.get_view() != "a" && name.get_view() != "b") return std::unexpected(ShelfError{ShelfError::NotFound{std::move(name)}});
  return Shelf::Owned(new Shelf(std::move(name), 2));
}

wit::vector<Shelf::Owned> OpenShelves(wit::vector<wit::string> names) {
  auto shelves = wit::vector<Shelf::Owned>::allocate(names.size());
  for (size_t i = 0; i < names.size(); i++) shelves.initialize(i, Shelf::Owned(new Shelf(wit::string(names[i]), 2)));
  return shelves;
}

uint64_t Checksum(wit::vector<uint8_t> data) {
  uint64_t sum = 0;
  for (auto byte : data.get_view()) sum += byte;
  return sum;
}

std::optional<wit::string> Longest(wit::vector<wit::string> words) {
  std::optional<wit::string> best;
  for (auto &word : words.get_view())
    if (!best || word.size() > best->size()) best = wit::string(word);
  return best;
}

std::expected<Book, wit::string> ParseBook(wit::string line) {
  auto text = line.get_view();
  auto at = text.find(" by ");
  if (at == text.npos) return std::unexpected(wit::string::from_view("there is no ` by `"));
  auto authors = wit::vector<wit::string>::allocate(1);
  authors.initialize(0, wit::string::from_view(text.substr(at + 4)));
  return Book{wit::string::from_view(text.substr(0, at)), {}, std::move(authors), Genre::kFiction, Marks::kNewArrival, {1, 0.5f}};
}

std::expected<void, ShelfError> Fail() { return std::unexpected(ShelfError{ShelfError::Closed{}}); }

}
