// The tools of `wit/plugin.wit`.

interface Person {
  name: string;
  age?: number;
}

type Shape = { tag: "circle"; val: number } | { tag: "square"; val: number } | { tag: "dot" };

class Counter {
  constructor(private value: number) {}

  increment(by: number): number {
    this.value += by;
    return this.value;
  }
}

function area(shape: Shape): number {
  switch (shape.tag) {
    case "circle":
      return Math.PI * shape.val ** 2;
    case "square":
      return shape.val ** 2;
    case "dot":
      return 0;
  }
}

export const tools = {
  Counter,

  echo(text: string): string {
    return text;
  },

  add(a: number, b: number): number {
    return (a + b) | 0;
  },

  // A thrown string is the error of the `result`.
  greet(person: Person): string {
    if (!person.name) throw "the name is empty";
    return person.age == null ? `Hello, ${person.name}!` : `Hello, ${person.name} (${person.age})!`;
  },

  areas(shapes: Shape[]): number[] {
    return shapes.map(area);
  },

  startCounter(value: number): Counter {
    return new Counter(value);
  },
};
