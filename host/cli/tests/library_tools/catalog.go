package export_acme_library_catalog

import (
	"runtime"
	"strings"

	. "go.bytecodealliance.org/pkg/wit/types"
	. "wit_component/acme_library_catalog"
	types "wit_component/acme_library_types"
)

type Shelf struct {
	pinner   runtime.Pinner
	handle   int32
	name     string
	capacity uint32
	books    []Book
}

func (s *Shelf) OnDrop() {}

func MakeShelf(name string, capacity uint32) *Shelf { return &Shelf{name: name, capacity: capacity} }

func (s *Shelf) Id() string { return s.name }

func (s *Shelf) Describe() Summary {
	titles := []string{}
	for _, book := range s.books {
		titles = append(titles, book.Title)
	}
	return Summary{Name: s.name, Count: uint32(len(s.books)), Titles: titles}
}

func (s *Shelf) Put(book Book) Result[uint32, ShelfError] {
	if uint32(len(s.books)) >= s.capacity {
		return Err[uint32, ShelfError](types.MakeShelfErrorFull(s.capacity))
	}
	s.books = append(s.books, book)
	return Ok[uint32, ShelfError](uint32(len(s.books)))
}

func (s *Shelf) Take(title string) Result[Book, ShelfError] {
	for at, book := range s.books {
		if book.Title == title {
			s.books = append(s.books[:at], s.books[at+1:]...)
			return Ok[Book, ShelfError](book)
		}
	}
	return Err[Book, ShelfError](types.MakeShelfErrorNotFound(title))
}

func (s *Shelf) Books(genre Option[Genre]) []Book {
	found := []Book{}
	for _, book := range s.books {
		if genre.IsNone() || genre.Some() == book.Type {
			found = append(found, book)
		}
	}
	return found
}

func ShelfClose(shelf *Shelf) []string {
	return shelf.Describe().Titles
}

func OpenShelf(name string) Result[*Shelf, ShelfError] {
	if name != "a" && name != "b" {
		return Err[*Shelf, ShelfError](types.MakeShelfErrorNotFound(name))
	}
	return Ok[*Shelf, ShelfError](MakeShelf(name, 2))
}

func OpenShelves(names []string) []*Shelf {
	shelves := []*Shelf{}
	for _, name := range names {
		shelves = append(shelves, MakeShelf(name, 2))
	}
	return shelves
}

func Checksum(data []uint8) uint64 {
	sum := uint64(0)
	for _, b := range data {
		sum += uint64(b)
	}
	return sum
}

func Longest(words []string) Option[string] {
	if len(words) == 0 {
		return None[string]()
	}
	longest := ""
	for _, word := range words {
		if len(word) > len(longest) {
			longest = word
		}
	}
	return Some(longest)
}

func ParseBook(line string) Result[Book, string] {
	title, author, found := strings.Cut(line, " by ")
	if !found {
		return Err[Book, string]("there is no ` by `")
	}
	return Ok[Book, string](Book{Title: title, Pages: None[uint16](), Authors: []string{author}, Type: types.GenreFiction, Marks: types.MarksNewArrival, Position: Tuple2[int32, float32]{1, 0.5}})
}

func Fail() Result[Unit, ShelfError] {
	return Err[Unit, ShelfError](types.MakeShelfErrorClosed())
}
