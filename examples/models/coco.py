"""What COCO's numbers mean. Lin et al. 2014, arXiv:1405.0312; cocodataset.org"""

# By number, 0 to 90; "" where there is none.
CLASSES = [name.strip() for name in """
    , person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, , stop sign,
    parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, , backpack, umbrella, , ,
    handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
    surfboard, tennis racket, bottle, , wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
    broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, , dining table, , , toilet, , tv,
    laptop, mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, , book, clock, vase,
    scissors, teddy bear, hair drier, toothbrush
    """.split(",")]
THINGS = [name for name in CLASSES if name]  # the 80 that there are, as YOLO numbers them
