"""Prints 640 impressions as CSV: whether they were clicked and bought (which needs a click, and is
not known of one in five), a user, an item and its price."""
import random

draw = random.Random(11)
print("click,buy,user,item,price")
for _ in range(640):
    user, item, price = draw.randrange(40), int(30 * draw.random() ** 2), draw.random()
    click = draw.random() < 0.15 + 0.4 * (user % 3 == item % 3)
    buy = click and draw.random() < 0.7 - 0.5 * price
    bought = "" if draw.random() < 0.2 else int(buy)
    print(f"{int(click)},{bought},u{user},i{item},{price:.3f}")
