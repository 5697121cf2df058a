"""Prints 640 rows of clicks as CSV: a user, an item, its price, and the items clicked before it,
from none to seven. Who has clicked an item's neighbours is more likely to click it."""
import random

draw = random.Random(7)
print("label,user,item,price,clicked")
for _ in range(640):
    item = int(30 * draw.random() ** 2)
    clicked = [int(30 * draw.random() ** 2) for _ in range(draw.randrange(8))]
    likely = 0.2 + 0.5 * any(abs(item - other) <= 1 for other in clicked)
    print(f"{int(draw.random() < likely)},u{draw.randrange(50)},i{item},{draw.random():.3f},"
          f"{'|'.join(f'i{other}' for other in clicked)}")
