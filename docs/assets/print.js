/* On paper nothing can be unfolded: what is folded is printed open, and folded again afterwards. */

let opened = []

addEventListener("beforeprint", () => {
  const folded = document.querySelectorAll(".md-content details:not([open], .source)")
  opened = [...folded]
  for (const fold of opened) fold.open = true
})

addEventListener("afterprint", () => {
  for (const fold of opened) fold.open = false
})
