type Genre = "fiction" | "science-fiction" | "poetry";
interface Marks { lent?: boolean; damaged?: boolean; newArrival?: boolean }
interface Book { title: string; pages?: number; authors: string[]; type: Genre; marks: Marks; position: [number, number] }
type ShelfError = { tag: "not-found"; val: string } | { tag: "full"; val: number } | { tag: "closed" };

class Shelf {
  private content: Book[] = [];
  constructor(private name: string, private capacity: number) {}
  id(): string { return this.name; }
  describe() { return { name: this.name, count: this.content.length, titles: this.content.map((b) => b.title) }; }
  put(book: Book): number {
    if (this.content.length >= this.capacity) throw { tag: "full", val: this.capacity } satisfies ShelfError;
    this.content.push(book);
    return this.content.length;
  }
  take(title: string): Book {
    const at = this.content.findIndex((b) => b.title === title);
    if (at < 0) throw { tag: "not-found", val: title } satisfies ShelfError;
    return this.content.splice(at, 1)[0];
  }
  books(genre?: Genre): Book[] { return this.content.filter((b) => genre == null || b.type === genre); }
}

export const catalog = {
  Shelf,
  openShelf(name: string): Shelf {
    if (name !== "a" && name !== "b") throw { tag: "not-found", val: name } satisfies ShelfError;
    return new Shelf(name, 2);
  },
  openShelves: (names: string[]) => names.map((name) => new Shelf(name, 2)),
  checksum: (data: Uint8Array) => data.reduce((sum, byte) => sum + byte, 0),
  longest: (words: string[]) => words.length ? words.reduce((a, b) => (b.length > a.length ? b : a)) : undefined,
  parseBook(line: string): Book {
    const [title, author] = line.split(" by ");
    if (author === undefined) throw "there is no ` by `";
    return { title, authors: [author], type: "fiction", marks: { newArrival: true }, position: [1, 0.5] };
  },
  fail() { throw { tag: "closed" } satisfies ShelfError; },
};
