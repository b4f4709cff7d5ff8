/* The state of a box in the page's address: ?walk-ring=gbkcmaph&walk-hops=4. A link opens it so. */

import { make } from "./elements.js"

/** What the address says of the box `name`: {setting: text}. */
export function inAddress(name) {
  const entries = [...new URLSearchParams(location.search)]
  const its = entries.filter(([key]) => key.startsWith(`${name}-`))
  return Object.fromEntries(its.map(([key, text]) => [key.slice(name.length + 1), text]))
}

/** The page's address with this state of the box. */
function addressOf(name, state) {
  const address = new URL(location)
  for (const [key, value] of Object.entries(state)) address.searchParams.set(`${name}-${key}`, value)
  return address
}

/** Put the state of the box into the address, once its visitor has changed something. */
export function toAddress(name, state) {
  history.replaceState(history.state, "", addressOf(name, state))
}

/** A button that copies the address with the state of the box, which `state()` gives. */
export function copyLink(name, state) {
  const link = make("button", { type: "button" }, "Copy link")
  link.addEventListener("click", async () => {
    toAddress(name, state())
    const said = await navigator.clipboard?.writeText(location.href).then(
      () => "Copied",
      () => null,
    )
    link.textContent = said ?? "The link is in the address bar"
    setTimeout(() => (link.textContent = "Copy link"), 3000)
  })
  return link
}
