export const tools = {
  async doubleLater(value) {
    await Promise.resolve();
    return value * 2;
  },
  async check(name) {
    await Promise.resolve();
    if (!name) throw "the name is empty";
    return `${name} is a name`;
  },
  async count(to) {
    return (async function* () {
      for (let number = 1; number <= to; number++) yield number;
    })();
  },
  async speak(text) {
    return (async function* () {
      for (const letter of text) yield Uint8Array.of(letter.charCodeAt(0));
    })();
  },
  async promise(value) {
    return wit.Future.from(value, wit.Future.STRING).readable;
  },
  async sum(numbers) {
    let sum = 0;
    for await (const number of numbers) sum += number;
    return sum;
  },
  plain(value) {
    return value + 1;
  },
};
