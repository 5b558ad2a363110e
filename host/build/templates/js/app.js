// The tools of `wit/plugin.wit`.

class Counter {
  constructor(value) {
    this.value = value;
  }

  increment(by) {
    this.value += by;
    return this.value;
  }
}

function area(shape) {
  switch (shape.tag) {
    case "circle":
      return Math.PI * shape.val ** 2;
    case "square":
      return shape.val ** 2;
    default:
      return 0;
  }
}

export const tools = {
  Counter,

  echo(text) {
    return text;
  },

  add(a, b) {
    return (a + b) | 0;
  },

  // A thrown string is the error of the `result`.
  greet(person) {
    if (!person.name) throw "the name is empty";
    return person.age == null ? `Hello, ${person.name}!` : `Hello, ${person.name} (${person.age})!`;
  },

  areas(shapes) {
    return shapes.map(area);
  },

  startCounter(value) {
    return new Counter(value);
  },
};
