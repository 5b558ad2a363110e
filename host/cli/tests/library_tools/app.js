class Shelf {
  constructor(name, capacity) { this.name = name; this.capacity = capacity; this.content = []; }
  id() { return this.name; }
  describe() { return { name: this.name, count: this.content.length, titles: this.content.map((b) => b.title) }; }
  put(book) {
    if (this.content.length >= this.capacity) throw { tag: "full", val: this.capacity };
    this.content.push(book);
    return this.content.length;
  }
  take(title) {
    const at = this.content.findIndex((b) => b.title === title);
    if (at < 0) throw { tag: "not-found", val: title };
    return this.content.splice(at, 1)[0];
  }
  books(genre) { return this.content.filter((b) => genre == null || b.type === genre); }
}

export const catalog = {
  Shelf,
  openShelf(name) {
    if (name !== "a" && name !== "b") throw { tag: "not-found", val: name };
    return new Shelf(name, 2);
  },
  openShelves(names) { return names.map((name) => new Shelf(name, 2)); },
  checksum(data) { return data.reduce((sum, byte) => sum + byte, 0); },
  longest(words) { return words.length ? words.reduce((a, b) => (b.length > a.length ? b : a)) : undefined; },
  parseBook(line) {
    const [title, author] = line.split(" by ");
    if (author === undefined) throw "there is no ` by `";
    return { title, pages: undefined, authors: [author], type: "fiction", marks: { newArrival: true }, position: [1, 0.5] };
  },
  fail() { throw { tag: "closed" }; },
};
