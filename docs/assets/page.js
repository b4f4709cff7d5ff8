// the search takes a leading "-" for "without", so that nobody would find --lr as it is typed:
// it is given the words without their dashes, while the field goes on showing them
for (const input of document.querySelectorAll(".md-search__input")) {
  const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")
  Object.defineProperty(input, "value", {
    get() { return own.get.call(this).replace(/(^|\s)-+(?=\w)/g, "$1") },
    set(text) { own.set.call(this, text) },
  })
}

// on paper a fold shows what its reader has opened: the theme opens all of them to print, answers too
document.addEventListener("click", (event) => {
  const fold = event.target.closest("summary")?.parentElement
  fold?.classList.toggle("unfolded", !fold.open)
})

// what scrolls sideways can be reached by keyboard, too
function letScroll() {
  const boxes = "article figure, .md-typeset__scrollwrap, article pre > code"
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0
    else box.removeAttribute("tabindex")
  }
}
addEventListener("load", letScroll)
addEventListener("resize", letScroll)
document.addEventListener("toggle", letScroll, true) // of a fold: what is in it has its width now
