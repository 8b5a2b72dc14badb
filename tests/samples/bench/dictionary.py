d = {}
for i in range(60000):
    d[i % 500] = d.get(i * 7 % 500, 0) + len(str(i))
print(len(d))
