import { Button } from "buttons";
import { memo } from "react";

const Item = memo(function Item({ text }) {
  return <li>{text}</li>;
});

export function Hello() {
  return (
    <ul>
      <Item text="React" />
      <Button>Buy</Button>
    </ul>
  );
}
