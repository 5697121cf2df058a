"""Prints 640 impressions as CSV: whether they were clicked and bought, either of which is not known
of some, but not both; a user, an item and its price."""
import random

draw = random.Random(17)
print("click,buy,user,item,price")
for _ in range(640):
    user, item, price = draw.randrange(40), int(30 * draw.random() ** 2), draw.random()
    click = int(draw.random() < 0.2 + 0.4 * (user % 3 == item % 3))
    buy = int(click and draw.random() < 0.8 - 0.5 * price)
    unknown = draw.random()
    print(f"{'' if unknown < 0.25 else click},{'' if unknown > 0.8 else buy},u{user},i{item},"
          f"{price:.3f}")
